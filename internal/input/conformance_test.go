package input

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triegs/triegs"
)

// conformance is the folder of the W3C test suites, beside the repository.
var conformance = filepath.Join("..", "..", "..", "..", "..", "shared", "data", "conformance")

// TestW3CNTriples runs the W3C syntax tests of N-Triples 1.1.
func TestW3CNTriples(t *testing.T) {
	cases, err := os.ReadFile(filepath.Join(conformance, "cases.tsv"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the W3C test suites are not beside the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	files := unpack(t, filepath.Join(conformance, "w3c-rdf-tests.tar.gz"))
	ran := 0
	for line := range strings.Lines(string(cases)) {
		cols := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if cols[0] != "rdf-n-triples" {
			continue
		}
		ran++
		t.Run(cols[1], func(t *testing.T) {
			text, ok := files[cols[3]]
			if !ok {
				t.Fatalf("%s is not in the pack", cols[3])
			}
			got, err := readAll("nt", text)
			switch cols[2] {
			case "TestNTriplesPositiveSyntax":
				if err != nil {
					t.Errorf("refused: %v", err)
				}
			case "TestNTriplesNegativeSyntax":
				if !errors.Is(err, triegs.ErrSyntax) {
					t.Errorf("got %q, %v, want ErrSyntax", got, err)
				}
			default:
				t.Fatalf("unknown kind %s", cols[2])
			}
		})
	}
	if ran == 0 {
		t.Error("no case was found")
	}
}

// unpack reads a tar.gz into memory.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "./")] = string(b)
	}
}
