package bench

import (
	"fmt"
	"slices"
)

// Figure is one number of a measurement.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// StructureRun says what to measure of a structure.
type StructureRun struct {
	Structure string `json:"structure"` // see Structures
	Columns   int    `json:"columns"`   // of a key: 1, or 2 packed into one word
	Keys      int    `json:"keys"`      // that are there
	Epoch     int    `json:"epoch"`     // writes in a version
}

// Structures lists the structures that can be measured: what versions need a
// trie for, the map that has none, and two versioned rivals. The slice is the
// floor of a scan.
func Structures() []string { return []string{"trie", "map", "btree", "iradix", "slice"} }

// keySet draws different keys: of one column, numbers below twice their count
// (ids of which one in two is there); of two, edges with four targets for each
// source on average.
func keySet(columns, n int) []uint64 {
	r := splitmix(uint64(2000 + columns))
	seen := make(map[uint64]bool, n)
	keys := make([]uint64, 0, n)
	for len(keys) < n {
		key := uint64(1 + r.below(2*n))
		if columns == 2 {
			key = uint64(1+r.below(n/4+1))<<32 | key
		}
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// shuffled is a copy in another order.
func shuffled(keys []uint64, seed uint64) []uint64 {
	out, r := slices.Clone(keys), splitmix(seed)
	for i := len(out) - 1; i > 0; i-- {
		j := r.below(i + 1)
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// MeasureStructure loads the keys in epochs and measures each operation in
// nanoseconds of CPU time: a set of a new key, a delete of one, a get of one
// that is there, a key of a prefix scan, a key of a full scan, and a key that a
// diff finds. Every operation is checked by a sum that a plain loop gives.
func MeasureStructure(r StructureRun) ([]Figure, error) {
	if r.Columns < 1 || r.Columns > 2 || r.Keys < 10 || r.Epoch < 1 {
		return nil, fmt.Errorf("no measurement %+v", r)
	}
	s := newStructure(r.Structure, r.Columns)
	if s == nil {
		return nil, fmt.Errorf("no structure %q", r.Structure)
	}
	m := &structureRun{StructureRun: r, s: s}
	all := keySet(r.Columns, r.Keys+r.Keys/5)
	m.keys, m.fresh = all[:r.Keys], all[r.Keys:]
	m.write(2000, m.keys, 1)
	if _, only := s.(*bySlice); only {
		slices.Sort(s.(*bySlice).keys)
		return m.figures, m.scans()
	}
	for _, f := range []func() error{m.writes, m.gets, m.prefixes, m.scans, m.diffs} {
		if err := f(); err != nil {
			return nil, fmt.Errorf("%s over %d columns in epochs of %d: %w", r.Structure, r.Columns, r.Epoch, err)
		}
	}
	return m.figures, nil
}

type structureRun struct {
	StructureRun
	s           structure
	keys, fresh []uint64
	figures     []Figure
}

// write is epochs of n writes.
func (m *structureRun) write(n int, keys []uint64, weight int64) {
	for epoch := range slices.Chunk(keys, n) {
		m.s.write(epoch, weight)
	}
}

// measure notes the nanoseconds of do by n.
func (m *structureRun) measure(name string, n int, do func()) {
	t := cpuSeconds()
	do()
	m.figures = append(m.figures, Figure{name, (cpuSeconds() - t) * 1e9 / float64(n), "ns"})
}

// repeat is measure for something that comes to n keys each time.
func (m *structureRun) repeat(name string, times, n int, do func()) {
	m.measure(name, n*times, func() {
		for range times {
			do()
		}
	})
}

func (m *structureRun) writes() error {
	m.measure("set", len(m.fresh), func() { m.write(m.Epoch, m.fresh, 1) })
	if got := m.s.get(m.fresh); got != int64(len(m.fresh)) {
		return fmt.Errorf("%d of %d new keys are there", got, len(m.fresh))
	}
	gone := shuffled(m.fresh, 1)
	m.measure("delete", len(gone), func() { m.write(m.Epoch, gone, 0) })
	if got := m.s.get(m.fresh); got != 0 {
		return fmt.Errorf("%d deleted keys are there", got)
	}
	return nil
}

func (m *structureRun) gets() error {
	asked := shuffled(m.keys, 2)
	sum := int64(0)
	m.measure("get", len(asked), func() { sum = m.s.get(asked) })
	if sum != int64(len(asked)) {
		return fmt.Errorf("%d of %d keys were found", sum, len(asked))
	}
	return nil
}

// sum is that of the last columns.
func sum(keys []uint64) (n uint64) {
	for _, key := range keys {
		n += key & low
	}
	return n
}

// prefixes asks for all sources in a random order.
func (m *structureRun) prefixes() error {
	if m.Columns < 2 {
		return nil
	}
	sources := make([]uint64, len(m.keys))
	for i, key := range m.keys {
		sources[i] = key >> 32
	}
	slices.Sort(sources)
	sources = shuffled(slices.Compact(sources), 3)
	if _, ok := m.s.prefix(nil); !ok {
		return nil
	}
	var got uint64
	m.measure("prefix", len(m.keys), func() { got, _ = m.s.prefix(sources) })
	if want := sum(m.keys); got != want {
		return fmt.Errorf("the groups add up to %d, not %d", got, want)
	}
	return nil
}

func (m *structureRun) scans() error {
	var got uint64
	m.repeat("scan", 5, len(m.keys), func() { got = m.s.scan() })
	want := sum(m.keys)
	if got != want {
		return fmt.Errorf("a scan adds up to %d, not %d", got, want)
	}
	if t, ok := m.s.(*byTrie); ok {
		if m.repeat("scan of runs", 5, len(m.keys), func() { got = t.runs() }); got != want {
			return fmt.Errorf("a scan of runs adds up to %d, not %d", got, want)
		}
	}
	return nil
}

// diffs compares a version with one before it, which differ by one epoch.
func (m *structureRun) diffs() error {
	changed := m.fresh[:min(m.Epoch, len(m.fresh))]
	count := m.s.diff(changed, 1)
	if count == nil {
		return nil
	}
	got, times := 0, 3
	if m.Structure == "trie" {
		times = max(times, m.Keys/len(changed)) // the others look at every key
	}
	m.repeat("diff", times, len(changed), func() { got = count() })
	if got != len(changed) {
		return fmt.Errorf("a diff finds %d keys of %d", got, len(changed))
	}
	return nil
}
