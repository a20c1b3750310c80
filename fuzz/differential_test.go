package fuzz

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/triegs/triegs/internal/randq"
)

// The size of the differential run. Several queries share a store, so that
// relations, terms and epochs are shared too; each is one pair of a query and a
// stream.
const (
	pairsFull   = 4000
	pairsShort  = 400
	queriesEach = 4
	epochsEach  = 50
)

// TestOracleFullAcyclic compares the engine with the oracle after every epoch
// of random streams: answers with their multiplicities, lookups of present and
// absent tuples, counts, ad hoc queries, a variant of each query with its atoms
// permuted and its variables renamed, and older snapshots that are still held.
func TestOracleFullAcyclic(t *testing.T) {
	pairs := pairsFull
	if testing.Short() {
		pairs = pairsShort
	}
	stores := (pairs + queriesEach - 1) / queriesEach
	const shards = 8
	for shard := range shards {
		t.Run(fmt.Sprintf("shard%d", shard), func(t *testing.T) {
			t.Parallel()
			for i := shard; i < stores; i += shards {
				seed := uint64(1_000 + i)
				c := randq.New(seed, randq.Size{Queries: queriesEach, AtomsMax: 6, Epochs: epochsEach})
				if err := check(c, seed, false); err != nil {
					t.Fatal(report(c, seed, false, err))
				}
			}
		})
	}
}

// TestCases runs the cases that once failed, and a few that show much in little.
func TestCases(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "cases", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d cases, error %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			c, err := randq.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(5) {
				if err := check(c, seed, true); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
}

// FuzzDifferential lets a fuzzer make the choices of a case.
func FuzzDifferential(f *testing.F) {
	f.Add([]byte("continuous graph queries"), uint64(1))
	f.Add([]byte{0, 255, 0, 255, 7, 7, 7, 200, 13, 90}, uint64(2))
	f.Add([]byte{}, uint64(3))
	f.Add([]byte("checkpoints and restarts"), uint64(7))
	f.Add([]byte{200, 100, 50, 25, 12, 6, 3, 1, 0, 99, 98, 97}, uint64(15))
	f.Fuzz(func(t *testing.T, choices []byte, seed uint64) {
		c := randq.FromBytes(choices, randq.Size{Queries: 2, AtomsMax: 5, Epochs: 12})
		if seed%8 == 7 { // these take much longer
			saved := func(c randq.Case) error { _, err := checkSaved(c, seed, true); return err }
			if err := saved(c); err != nil {
				t.Fatal(reportWith(c, seed, err, saved))
			}
			return
		}
		if err := check(c, seed, true); err != nil {
			t.Fatal(report(c, seed, true, err))
		}
	})
}
