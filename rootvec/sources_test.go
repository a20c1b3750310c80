package rootvec

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

func TestSourcesAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var s Sources
	model := map[string]Source{}
	type version struct {
		s     Sources
		model map[string]Source
	}
	var old []version
	for i := range uint64(3000) {
		name := fmt.Sprint(rng.IntN(200))
		p := Source{Next: i, Incarnation: fmt.Sprint(i % 3)}
		s, model[name] = s.With(name, p), p
		if got, ok := s.Get(name); !ok || got != p {
			t.Fatalf("step %d: %v, %v", i, got, ok)
		}
		if i%100 == 0 {
			old = append(old, version{s, maps.Clone(model)})
		}
	}
	for _, v := range append(old, version{s, model}) {
		if got := maps.Collect(v.s.All()); !maps.Equal(got, v.model) {
			t.Fatalf("%d sources, want %d as they were", len(got), len(v.model))
		}
	}
	if _, ok := s.Get("never"); ok {
		t.Fatal("a source that was never seen is known")
	}
}

func TestSourcesOf(t *testing.T) {
	of := map[string]Source{"a": {Next: 1, Incarnation: "x"}, "b": {Next: 2, Skipped: 3}}
	want := maps.Clone(of)
	s := SourcesOf(of)
	next := s.With("a", Source{Next: 9})
	if got := maps.Collect(s.All()); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	want["a"] = Source{Next: 9}
	if got := maps.Collect(next.All()); !maps.Equal(got, want) {
		t.Errorf("after a step: got %v, want %v", got, want)
	}
	if got := maps.Collect(SourcesOf(nil).With("c", Source{}).All()); len(got) != 1 {
		t.Errorf("from none: got %v", got)
	}
}
