package views

import (
	"slices"

	"github.com/triegs/triegs/query"
)

// seeds are the changed tuples that a pass of Deltas starts from, read a few at a
// time, so that what all of them are joined with first is fetched from memory side
// by side. Those of the second pass are kept while the first one meets them, as
// far as there is room, so that the tries are compared once.
type seeds struct {
	rows   []uint64 // a tuple in the order of the node's trie and both weights each
	at     int      // behind the current one
	warmed int      // those before it have been fetched for
	own    []uint64 // the memory of rows where they are read from the tries
	more   bool     // there may be some in the tries
	gone   []goneRows
	groups []warmGroup
	prefix []uint64
	warm   uint64 // keeps the loads alive
}

// goneRows are what the second pass starts from at a node, as in seeds.rows.
type goneRows struct {
	rows []uint64
	all  bool // none was left out
}

// warmGroup is a group that the seeds of a node are joined with, which is found by
// their columns alone.
type warmGroup struct {
	level *deltaLevel
	cols  []int // of the seed's tuple, for each column of the level's key
}

const (
	// seedsMax is how many are read at a time: as many loads as a core has under way.
	seedsMax = 16
	// goneMax bounds how many words are kept of a node for the second pass.
	goneMax = 1 << 14
)

func newSeeds(nodes int) seeds { return seeds{gone: make([]goneRows, nodes)} }

func (s *seeds) reset() {
	for i := range s.gone {
		s.gone[i] = goneRows{rows: s.gone[i].rows[:0]}
	}
}

// seekSeeds goes before the first seed of the pass at its node. It is false if there
// is plainly none.
func (d *Deltas) seekSeeds() bool {
	s, gone := &d.seeds, &d.seeds.gone[d.seed]
	s.rows, s.at, s.warmed, s.more = nil, 0, 0, false
	if d.pass == passGone && gone.all {
		s.rows = gone.rows
		return len(s.rows) > 0
	}
	gone.all = d.pass == passNew
	s.more = d.from.seek(d.seed)
	return s.more
}

// nextSeedRow is the next tuple that the pass may start from, with the weight that it
// has in the version that is walked and that in the other; nil behind the last one.
func (d *Deltas) nextSeedRow() []uint64 {
	s, stride := &d.seeds, d.q.nodes[d.seed].columns+2
	if s.at == s.warmed {
		if s.at == len(s.rows) && !d.readSeeds(stride) {
			return nil
		}
		s.warmed = min(len(s.rows), s.at+seedsMax*stride)
		s.fetch(s.rows[s.at:s.warmed], stride)
	}
	row := s.rows[s.at : s.at+stride]
	s.at += stride
	return row
}

// readSeeds reads the next seeds from the tries. It is false if there are no more.
func (d *Deltas) readSeeds(stride int) bool {
	s := &d.seeds
	s.own, s.at, s.warmed = s.own[:0], 0, 0
	for s.more && len(s.own) < seedsMax*stride {
		if s.more = d.from.next(); s.more {
			d.readSeed()
		}
	}
	s.rows = s.own
	return len(s.rows) > 0
}

// readSeed appends the changed tuple to the seeds, if the pass may start from it.
func (d *Deltas) readSeed() {
	s, n := &d.seeds, &d.q.nodes[d.seed]
	tuple, before, after := d.from.change()
	before, after = n.count(before), n.count(after)
	switch {
	case d.pass == passNew && after == 0 && before != 0:
		s.gone[d.seed].add(tuple, before)
	case d.pass == passNew && after != 0 && (before != after || d.revalued(d.seed, tuple)):
		s.own = append(append(s.own, tuple...), uint64(after), uint64(before))
	case d.pass == passGone && after == 0 && before != 0:
		s.own = append(append(s.own, tuple...), uint64(before), 0)
	}
}

// add keeps a tuple, unless there are too many.
func (g *goneRows) add(tuple []uint64, before int64) {
	if len(g.rows)+len(tuple)+2 > goneMax {
		g.all = false
	}
	if g.all {
		g.rows = append(append(g.rows, tuple...), uint64(before), 0)
	}
}

// arrangeFetch finds the levels whose groups can be fetched ahead for the seeds of a
// node: those that its columns lead to.
func (d *Deltas) arrangeFetch(n *node) {
	s := &d.seeds
	s.groups = s.groups[:0]
	for i := range d.levels {
		l := &d.levels[i]
		s.groups = slices.Grow(s.groups, 1)[:len(s.groups)+1]
		g := &s.groups[len(s.groups)-1]
		g.level, g.cols = l, g.cols[:0]
		for _, v := range l.key {
			if col := n.column(v); col >= 0 {
				g.cols = append(g.cols, col)
			}
		}
		if len(g.cols) < len(l.key) {
			s.groups = s.groups[:len(s.groups)-1]
		}
	}
}

// column is where a variable stands in the tuples of the node's trie, -1 if nowhere.
func (n *node) column(v query.Var) int {
	if i := slices.Index(n.key, v); i >= 0 {
		return len(n.lead) + i
	}
	if i := slices.Index(n.rest, v); i >= 0 {
		return len(n.lead) + len(n.key) + i
	}
	return -1
}

// fetch loads the groups of all levels that some rows lead to.
func (s *seeds) fetch(rows []uint64, stride int) {
	for i := range s.groups {
		g := &s.groups[i]
		l := g.level
		for at := 0; at < len(rows); at += stride {
			s.prefix = append(s.prefix[:0], l.lead...)
			for _, col := range g.cols {
				s.prefix = append(s.prefix, rows[at+col])
			}
			s.warm += l.walked.space.WarmPrefix(l.walked.root, l.columns, s.prefix)
		}
	}
}
