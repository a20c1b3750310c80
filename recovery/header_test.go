package recovery

import (
	"reflect"
	"testing"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/checkpoint"
	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/rootvec"
)

// TestHeaderCarries: all that a frozen state says beside its facts and terms is
// in the base state that is made of the header.
func TestHeaderCarries(t *testing.T) {
	c := catalog.Empty.Clone()
	c.AddRelation(catalog.Relation{Name: "pay", Arity: 2})
	c.AddRelation(catalog.Relation{Name: "knows", Arity: 2})
	c = c.WithKeep(1, 3600)
	for i, opts := range []catalog.Options{
		{}, {Set: true}, {Distinct: true, Window: query.Window{Range: 600, Slide: 60}}, {Window: query.Window{Last: 5}},
	} {
		q := &catalog.Query{
			Name: string(rune('a' + i)), Text: "q(x, y) :- pay(x, y).", Epoch: uint64(i + 1),
			Set: opts.Set, Dist: opts.Distinct, Window: opts.Window,
		}
		var err error
		if q.Plan, err = catalog.Compile(q.Text, opts); err != nil {
			t.Fatal(err)
		}
		c = c.WithQuery(q)
	}
	sources := map[string]rootvec.Source{
		"plain": {Incarnation: "1", Next: 7, Skipped: 2},
		"zero":  {HasWatermark: true},
		"timed": {Next: 9, Watermark: -5, HasWatermark: true},
		"told":  {Next: 9, Watermark: -6, HasWatermark: true, Explicit: true},
	}
	f := &epoch.Frozen{
		Epoch: 9, Time: -1, LastTerm: 4, Catalog: c, Sources: rootvec.SourcesOf(sources), Digest: rootvec.Digest{1, 2},
		Parts: []rootvec.Digest{{3, 4}, {5, 6}}, Facts: []int{10, 11}, Next: []uint64{20, 21},
		Lateness: 30, EventTime: true, Clocked: true, Waiting: []byte("what waits"),
	}
	stored := new(Store).header(f)
	h, err := checkpoint.DecodeHeader(stored.AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	b, err := baseOf(&h, &r)
	if err != nil || len(r.Replanned) > 0 {
		t.Fatal(err, r.Replanned)
	}
	if b.Epoch != f.Epoch || b.Time != f.Time || b.LastTerm != f.LastTerm || b.Digest != f.Digest ||
		b.Lateness != f.Lateness || b.EventTime != f.EventTime || b.Clocked != f.Clocked || string(b.Waiting) != string(f.Waiting) {
		t.Errorf("got %+v of %+v", b, f)
	}
	want := []epoch.BaseRelation{
		{Name: "pay", Arity: 2, Facts: 10, Digest: rootvec.Digest{3, 4}, Next: 20},
		{Name: "knows", Arity: 2, Facts: 11, Digest: rootvec.Digest{5, 6}, Next: 21, Keep: 3600},
	}
	if !reflect.DeepEqual(b.Relations, want) {
		t.Errorf("relations are %+v, want %+v", b.Relations, want)
	}
	for name, p := range sources {
		if got, _ := b.Sources.Get(name); got != p {
			t.Errorf("source %s is %+v, want %+v", name, got, p)
		}
	}
	for i, want := range c.Queries() {
		got := *b.Queries[i]
		got.Plan = want.Plan
		if got != *want || b.Queries[i].Plan.Fingerprint() != want.Plan.Fingerprint() {
			t.Errorf("query %s is %+v, want %+v", want.Name, *b.Queries[i], *want)
		}
	}
}
