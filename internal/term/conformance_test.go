package term

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConformance reads the documents of the W3C N-Triples suite line by line:
// every one of a positive case is read, every one of a negative case refused.
func TestConformance(t *testing.T) {
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
	good, bad := 0, 0
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(filepath.Dir(h.Name)) != "rdf-n-triples" || filepath.Ext(h.Name) != ".nt" {
			continue
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		ok := true
		for line := range strings.Lines(string(b)) {
			ok = ok && readTriple(line)
		}
		if wanted := !strings.Contains(h.Name, "-bad-"); ok != wanted {
			t.Errorf("%s: read %v, want %v\n%s", h.Name, ok, wanted, b)
		} else if wanted {
			good++
		} else {
			bad++
		}
	}
	t.Logf("%d documents read, %d refused", good, bad)
	if good == 0 || bad == 0 {
		t.Error("the suite is not in the pack")
	}
}

// readTriple reads a line of N-Triples, which may be empty or a comment.
func readTriple(line string) bool {
	space := func() { line = strings.TrimLeft(line, " \t\r\n") }
	var kinds [3]Kind
	for i := range kinds {
		space()
		if i == 0 && (line == "" || line[0] == '#') {
			return true
		}
		v, n, err := ParsePrefix(line)
		if err != nil {
			return false
		}
		for _, iri := range []string{v.Datatype(), v.Lexical()} {
			if (v.Kind() == KindIRI || v.Kind() == KindTyped && iri == v.Datatype()) && iri != "" && !strings.Contains(iri, ":") {
				return false // relative
			}
		}
		kinds[i], line = v.Kind(), line[n:]
	}
	space()
	rest, dot := strings.CutPrefix(line, ".")
	line = rest
	space()
	node := kinds[0] == KindIRI || kinds[0] == KindBlank
	return node && kinds[1] == KindIRI && dot && (line == "" || line[0] == '#')
}
