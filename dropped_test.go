package triegs_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/triegs/triegs"
)

// TestDroppedMemory registers and drops queries that have relations of their own
// gathered, values and a window, and finds the heap as it was (QRY-01).
func TestDroppedMemory(t *testing.T) {
	ctx := context.Background()
	db, err := triegs.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const edges = 60_000
	var events []triegs.Event
	for i := range int64(edges) {
		events = append(events, triegs.Edge("r", triegs.Int(i/10), triegs.Int(i*7919%20_000)))
		if len(events) == 1000 {
			if _, err := db.Append(ctx, triegs.Batch{Events: events}); err != nil {
				t.Fatal(err)
			}
			events = events[:0]
		}
	}
	clear(events[:cap(events)])
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for _, text := range []string{
		"q(x) :- r(x, y)@, r(y, z)@ semiring minplus.",
		"q(x) :- r(x, y)@ semiring why.",
		"q(x, sum(z)) :- r(x, y), r(y, z) window 1h.",
	} {
		if _, err := db.Register(ctx, "q", text); err != nil {
			t.Fatal(err)
		}
		if err := db.Drop(ctx, "q"); err != nil {
			t.Fatal(err)
		}
		for range 3 { // what was dropped is reused behind the epochs that read it
			if _, err := db.Append(ctx, triegs.Batch{}); err != nil {
				t.Fatal(err)
			}
		}
		const slack = 1 << 20
		if after := heap(); after > before+before/10+slack {
			t.Errorf("%s: %d bytes before, %d after it was dropped", text, before, after)
		}
	}
	runtime.KeepAlive(db)
}
