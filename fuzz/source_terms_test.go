package fuzz

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triegs/triegs"
)

// Long literals are told apart to the last byte, join, and come back.
func TestTERM02(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.register("q", "q(x, y, z) :- R(x, y), R(y, z).")
	sizes := []int{65_535, 65_536, 65_537, 1 << 20, scaled(16<<20, 2<<20)}
	var terms []triegs.Term
	for _, n := range sizes {
		s := strings.Repeat("a", n-1)
		terms = append(terms, triegs.String(s+"b"), triegs.String(s+"c"))
	}
	long := bytes.Repeat([]byte{0}, 1<<20)
	terms = append(terms, triegs.Bytes(long), triegs.Bytes(long[1:]), triegs.IRI("http://example.org/"+strings.Repeat("p", 70_000)),
		triegs.LangString(strings.Repeat("ö", 40_000), "de"), triegs.Typed(strings.Repeat("1", 70_000), "http://www.w3.org/2001/XMLSchema#integer"))
	// A chain: term i leads to term i+1.
	var b triegs.Batch
	for i, x := range terms[1:] {
		b.Events = append(b.Events, triegs.Edge("R", terms[i], x))
	}
	w.append(b)
	for range 2 {
		s := w.snapshot()
		n := 0
		for r, err := range s.Answers("q") {
			if err != nil {
				t.Fatal(err)
			}
			at := -1
			for i := range terms {
				if r.Term(0) == terms[i] {
					at = i
				}
			}
			if at < 0 || r.Term(1) != terms[at+1] || r.Term(2) != terms[at+2] {
				t.Fatalf("an answer begins at term %d and goes on otherwise", at)
			}
			n++
		}
		if n != len(terms)-2 {
			t.Fatalf("%d answers, want %d", n, len(terms)-2)
		}
		for i := range terms[2:] {
			if r, err := s.Lookup("q", terms[i], terms[i+1], terms[i+2]); err != nil || r.Multiplicity() != 1 {
				t.Fatalf("answer %d: %v", i, err)
			}
		}
		// One byte more or less is another term.
		other := triegs.String(strings.Repeat("a", 1<<20))
		if _, err := s.Lookup("q", other, terms[1], terms[2]); !errors.Is(err, triegs.ErrNoAnswer) {
			t.Fatalf("a term that is not there: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		w.reopen(dir, nil)
	}
	if got := w.db.Metrics().Terms; got != uint64(len(terms)) {
		t.Errorf("%d terms, want %d", got, len(terms))
	}
}

// A blank node with a name of its own is the same in every batch and after every
// restart.
func TestTERM06(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.register("q", `q(x) :- p(x, "1"), p(x, "2").`)
	one := func(id, o string) triegs.Batch {
		return triegs.Batch{Events: []triegs.Event{triegs.Edge("p", triegs.Blank(id), triegs.String(o))}}
	}
	w.append(one("b0", "1"))
	w.reopen(dir, nil)
	w.append(one("b1", "2"))
	w.want("q", "")
	w.append(one("b0", "2"))
	w.want("q", "(b0):1")
	w.reopen(dir, nil)
	w.want("q", "(b0):1")
	w.append(one("b1", "1"))
	w.want("q", "(b0):1 (b1):1")
}

// In a fresh store relations and terms are told apart from the first on.
func TestTERM07(t *testing.T) {
	const rdf, rdfs = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://www.w3.org/2000/01/rdf-schema#label"
	dir := t.TempDir()
	w := newWorld(t, dir, nil)
	w.append(triegs.Batch{Events: []triegs.Event{
		triegs.Edge(rdf, triegs.IRI("s"), triegs.IRI("T")), triegs.Edge(rdfs, triegs.IRI("s"), triegs.String("x")),
	}})
	one := func(label, want string) {
		t.Helper()
		s := w.snapshot()
		defer s.Close()
		var got []string
		for r, err := range s.Select(w.ctx, fmt.Sprintf("q(x, y) :- <%s>(x, y).", label)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %s x%d", r.Term(0), r.Term(1), r.Multiplicity()))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %v, want %s", label, got, want)
		}
	}
	for range 3 {
		one(rdf, "<s> <T> x1")
		one(rdfs, `<s> "x" x1`)
		w.reopen(dir, nil)
	}
	w.append(triegs.Batch{Events: []triegs.Event{triegs.Edge("third", triegs.IRI("T"), triegs.String("x"))}})
	for range 2 {
		one("third", `<T> "x" x1`)
		one(rdf, "<s> <T> x1")
		w.reopen(dir, nil)
	}
	if m := w.db.Metrics(); m.Terms != 3 || m.Relations != 3 {
		t.Errorf("%d terms and %d relations, want 3 and 3", m.Terms, m.Relations)
	}
}
