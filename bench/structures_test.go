package bench

import (
	"fmt"
	"testing"
)

// TestStructures measures every structure on few keys; a wrong sum is an error.
func TestStructures(t *testing.T) {
	for _, name := range Structures() {
		for _, columns := range []int{1, 2} {
			figures, err := MeasureStructure(StructureRun{Structure: name, Columns: columns, Keys: 3000, Epoch: 7})
			if err != nil || len(figures) == 0 {
				t.Errorf("%s over %d columns: %v, %v", name, columns, figures, err)
			}
		}
	}
	for _, r := range []StructureRun{{"trie", 3, 1000, 1}, {"heap", 1, 1000, 1}, {"trie", 1, 1000, 0}} {
		if _, err := MeasureStructure(r); err == nil {
			t.Errorf("%+v was measured", r)
		}
	}
}

// BenchmarkStructureSet sets and deletes keys in epochs of 100, for profiles.
func BenchmarkStructureSet(b *testing.B) {
	for _, name := range []string{"trie", "map", "btree", "iradix"} {
		for _, columns := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", name, columns), func(b *testing.B) {
				const keys = 1_000_000
				m := &structureRun{s: newStructure(name, columns)}
				all := keySet(columns, keys+keys/5)
				m.write(2000, all[:keys], 1)
				fresh := all[keys:]
				b.ResetTimer()
				for done := 0; done < b.N; done += len(fresh) {
					n := min(len(fresh), b.N-done)
					m.write(100, fresh[:n], int64(1-done/len(fresh)%2))
				}
			})
		}
	}
}
