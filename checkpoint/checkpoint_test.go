package checkpoint

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

// TestRoundTrip: what went in comes out, through every way of opening, for
// elements of one file and of two.
func TestRoundTrip(t *testing.T) {
	sizes := []struct {
		name                 string
		facts, chunk, nterms int
	}{
		{"nothing", 0, 0, 0},
		{"facts only", 3, 500, 0},
		{"terms only", 0, 0, 40},
		{"small", 5, 2000, 700},
		{"terms in a table of their own", 20, 30000, 60000},
	}
	for _, size := range sizes {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/keep=%v", size.name, keep), func(t *testing.T) {
				dir := t.TempDir() + "/checkpoint"
				o := Options{StoreID: storeID, KeepOpen: keep}
				s := mustOpen(t, dir, o)
				if len(s.List()) != 0 {
					t.Fatal("a missing directory has checkpoints")
				}
				var m [4]model
				for i := range 3 {
					m[i+1] = mustWrite(t, s, m[i], uint64(i), size.facts, size.chunk, size.nterms)
					holds(t, s, s.List()[0], m[i+1])
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				for _, ro := range []bool{true, false} {
					o.ReadOnly = ro
					s := mustOpen(t, dir, o)
					list := s.List()
					if len(list) != 3 || list[0].Sequence != 3 || list[0].Epoch != 30 {
						t.Fatalf("%+v", list)
					}
					for i, in := range list {
						holds(t, s, in, m[3-i])
					}
					if _, err := s.Begin(t.Context()); ro != errors.Is(err, errs.ErrReadOnly) {
						t.Fatal(err)
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}
