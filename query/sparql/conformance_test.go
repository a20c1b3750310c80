package sparql

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// TestConformance runs the syntax of the W3C suites: every query of a positive
// case is read or refused as unsupported, every query of a negative one is
// refused.
func TestConformance(t *testing.T) {
	files := pack(t)
	read, refused, negative := 0, 0, 0
	for line := range strings.Lines(files["cases.tsv"]) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if len(f) < 4 || !strings.HasPrefix(f[3], "sparql/") || !strings.HasSuffix(f[3], ".rq") {
			continue
		}
		text, ok := files[f[3]]
		if !ok {
			t.Errorf("%s: %s is not in the pack", f[1], f[3])
			continue
		}
		_, err := Parse("BASE <https://w3c.github.io/rdf-tests/" + f[3] + "> " + text)
		if strings.Contains(f[2], "Negative") {
			negative++
			if err == nil {
				t.Errorf("%s (%s): accepted:\n%s", f[1], f[2], text)
			}
			continue
		}
		switch {
		case err == nil:
			read++
		case errors.Is(err, errs.ErrUnsupported):
			refused++
		default:
			t.Errorf("%s (%s): %v\n%s", f[1], f[2], err, text)
		}
	}
	t.Logf("positive cases: %d read, %d refused as unsupported; negative cases: %d refused", read, refused, negative)
	if read < 49 || negative < 61 {
		t.Errorf("fewer cases than there were")
	}
}

// pack reads the files of the suites.
func pack(t *testing.T) map[string]string {
	t.Helper()
	name := filepath.Join("..", "..", "..", "shared", "data", "conformance", "w3c-rdf-tests.tar.gz")
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the W3C suites are not there")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(b)
	}
}
