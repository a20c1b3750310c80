package catalog

import "testing"

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
