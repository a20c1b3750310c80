package recovery

import (
	"fmt"
	"testing"

	"github.com/triegs/triegs/checkpoint"
)

// The positions of many sources are taken over in one go: one after another
// they would be copied again and again, which is seconds for some ten thousand.
func TestManySources(t *testing.T) {
	var h checkpoint.Header
	for i := range uint64(20_000) {
		h.Sources = append(h.Sources, checkpoint.Source{Name: fmt.Sprint("source ", i), Next: i, Skipped: i / 2})
	}
	b, err := baseOf(&h, new(Report))
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range h.Sources {
		if got, ok := b.Sources.Get(src.Name); !ok || got.Next != src.Next || got.Skipped != src.Skipped {
			t.Fatalf("%s: got %+v, want %+v", src.Name, got, src)
		}
	}
	if n := testing.AllocsPerRun(1, func() { _, _ = baseOf(&h, new(Report)) }); n > 1000 {
		t.Errorf("%v allocations for %d sources", n, len(h.Sources))
	}
}
