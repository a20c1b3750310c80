package catalog

import (
	"errors"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// TestOptions: an option adds to what the text says and never contradicts it.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		text string
		o    Options
		form string // empty: refused
	}{
		{"q(x) :- r(x)", Options{Set: true, Distinct: true}, "q(v0) :- <r>(v0) distinct set."},
		{"q(x) :- r(x) distinct", Options{Distinct: true}, "q(v0) :- <r>(v0) distinct."},
		{"q(sum(x)) :- r(x)", Options{Set: true}, "q(sum(v0)) :- <r>(v0) set."},
		{"q(sum(x)) :- r(x)", Options{Distinct: true}, ""},
		{"q(x) :- r(x)@ semiring minplus", Options{}, "q(v0) :- <r>(v0)@ semiring minplus."},
		{"q(x) :- r(x)@ semiring minplus", Options{Distinct: true}, ""},
	} {
		q, err := Parse(c.text, c.o)
		switch {
		case c.form == "" && !errors.Is(err, errs.ErrValue):
			t.Errorf("%s with %+v: %v", c.text, c.o, err)
		case c.form != "" && (err != nil || q.Canonical() != c.form):
			t.Errorf("%s with %+v: %v", c.text, c.o, err)
		}
	}
}

// TestWithKeep: another retention is in another catalog, and what is added to
// that one is not in the first.
func TestWithKeep(t *testing.T) {
	c := Empty.Clone()
	for _, name := range []string{"a", "b"} {
		c.AddRelation(Relation{Name: name, Arity: 2})
	}
	d := c.WithKeep(1, 60)
	d.AddRelation(Relation{Name: "c", Arity: 1})
	if r := c.Relations(); len(r) != 2 || r[0].Keep != 0 || r[1].Keep != 0 {
		t.Errorf("the catalog itself now has %+v", r)
	}
	if _, _, ok := c.Relation("c"); ok {
		t.Error("the catalog itself now has relation c")
	}
	if r := d.Relations(); len(r) != 3 || r[0].Keep != 0 || r[1].Keep != 60 {
		t.Errorf("the other catalog has %+v", r)
	}
	if r := d.WithKeep(1, 0).Relations(); r[1].Keep != 0 {
		t.Errorf("retention 0 leaves %+v", r[1])
	}
}
