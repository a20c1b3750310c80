package views

import (
	"encoding/binary"
	"slices"

	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/trie"
)

// deltaLevel is the walk over the tuples of one node that fit the tuples above
// it in the list of levels: those of a parent on the way up from a seed, or
// those of a child of a node that is bound.
type deltaLevel struct {
	node   *node
	number int
	hop    *hop // of a level on the way up
	below  int  // the node that it is the parent of
	// here is the trie of the node in the version that is walked, there that in the
	// other one, walked what the cursor walks.
	here, there, walked boundNode
	changes             bool // the node has changed tuples
	owner               bool // and answers with one of those are met there

	lead     []uint64
	key      []query.Var
	rest     []query.Var
	columns  int
	cursor   trie.Cursor
	sought   []uint64 // prefix of the open group
	seeked   bool     // it is one
	alike    bool     // the group is plainly the same in both versions
	compared bool     // which was looked at
	probe    bool     // tuples have to be looked up in the other version
	tuple    []uint64 // in the order of the node's trie, where it was needed

	weight  factor
	product factor // down to here
	// Of a level on the way up: whether any tuple was there, one led to the root, and
	// the current one did.
	tried, reached, leads bool
	ways                  ways

	// ids is the current run of tuples when they bind one variable, weigh 1 and are
	// the same in the other version: its values, of which those before at are done.
	ids []uint64
	at  int
}

// ways are the tuples of a group that have led to the root: what its next seed
// with the same key has to climb through. Seeds with one key mostly come together.
type ways struct {
	rows  []uint64 // rest, and both weights
	state waysState
	at    int
}

type waysState uint8

const (
	waysNone   waysState = iota // nothing is known, or there are too many
	waysOpen                    // the group is being walked
	waysKnown                   // rows are all there are
	waysFollow                  // and they are walked
)

// waysMax bounds how many words are kept of a group.
const waysMax = 1 << 12

// arrange makes the levels for the changes of node i: first the way up to the
// root, then what hangs off it. There come first the nodes before i in
// pre-order, whose changed tuples are passed over, and inner nodes before leaves,
// so that the group of one leaf can stay open while another one moves.
func (d *Deltas) arrange(i int) {
	clear(d.onPath)
	d.onPath[i] = true
	d.levels = d.room[:0]
	for c := i; d.q.nodes[c].parent >= 0; c = d.q.nodes[c].parent {
		h := &d.hops[c]
		d.onPath[h.parent] = true
		d.addLevel(h.parent, h, c)
	}
	d.climbs = len(d.levels)
	for _, part := range [...]struct{ before, leaf bool }{{true, false}, {true, true}, {false, false}, {false, true}} {
		for j := range d.q.nodes {
			leaf := len(d.q.nodes[j].children) == 0
			if !d.onPath[j] && (j < i) == part.before && leaf == part.leaf {
				d.addLevel(j, nil, -1)
			}
		}
	}
	d.arrangeFetch(&d.q.nodes[i])
}

// addLevel adds the level of node j, which is the parent of below if it is
// reached by a hop.
func (d *Deltas) addLevel(j int, h *hop, below int) {
	n := &d.q.nodes[j]
	d.levels = d.levels[:len(d.levels)+1]
	l := &d.levels[len(d.levels)-1]
	walked, other := d.now, d.old
	if d.pass == passGone {
		walked, other = other, walked
	}
	*l = deltaLevel{
		node: n, number: j, hop: h, below: below, here: walked.nodes[j], there: other.nodes[j],
		changes: !d.same[j], owner: j < d.seed && !d.same[j],
		lead: n.lead, key: n.key, rest: n.rest, columns: n.columns,
		cursor: l.cursor, sought: l.sought[:0], tuple: l.tuple[:0], ways: ways{rows: l.ways.rows[:0]},
	}
	l.walked = l.here
	if h != nil {
		l.lead, l.key, l.rest, l.columns = h.lead, h.key, h.rest, h.columns
		if h.index != nil {
			l.walked = walked.at(h.index)
		}
	}
	if n := fixedPrefix(l.rest, d.fixed); n > 0 {
		l.key, l.rest = slices.Concat(l.key, l.rest[:n]), l.rest[n:]
	}
}

// seek opens the group of level j that the binding selects. It is false if there
// is known to be nothing to find.
func (d *Deltas) seek(j int) bool {
	l := &d.levels[j]
	again := d.selectGroup(l)
	if l.hop != nil && d.dead.has(l.below, l.sought[len(l.lead):]) {
		d.DeadEnds++
		l.seeked = false
		return false
	}
	l.tried, l.reached, l.leads, l.ids, l.at = false, false, false, nil, 0
	if again && l.ways.state == waysKnown {
		l.ways.state, l.ways.at = waysFollow, 0
		return true
	}
	l.ways.state, l.ways.rows = waysNone, l.ways.rows[:0]
	if l.hop != nil && len(l.rest) > 0 {
		l.ways.state = waysOpen
	}
	if again {
		l.cursor.Rewind()
	} else {
		l.cursor.Seek(l.walked.space, l.walked.root, l.columns, l.sought)
		l.compared = false
	}
	// The other version does not matter where the answer is not in it already.
	l.probe = l.changes && (l.owner || d.above(j).there != 0) && !d.alike(l)
	return true
}

// alike reports whether the open group is plainly the same in both versions.
func (d *Deltas) alike(l *deltaLevel) bool {
	if !l.compared {
		own := l.hop == nil || l.hop.index == nil
		l.compared, l.alike = true, own && !d.revalues[l.number] &&
			trie.SamePrefix(l.here.space, l.here.root, l.there.space, l.there.root, l.sought)
	}
	return l.alike
}

// selectGroup sets the prefix of the group that the binding selects, and reports
// whether it is the one that is open.
func (d *Deltas) selectGroup(l *deltaLevel) bool {
	again := l.seeked
	if !again {
		l.sought = append(l.sought[:0], l.lead...)
		for _, v := range l.key {
			l.sought = append(l.sought, d.binding[v])
		}
	} else {
		key := l.sought[len(l.lead):]
		for i, v := range l.key {
			if key[i] != d.binding[v] {
				key[i], again = d.binding[v], false
			}
		}
	}
	l.seeked = true
	return again
}

// above is the product of the weights over level j.
func (d *Deltas) above(j int) factor {
	if j == 0 {
		return d.base
	}
	return d.levels[j-1].product
}

// move goes to the next tuple of the group at level j that the pass is to take,
// and binds its variables.
func (d *Deltas) move(j int) bool {
	l := &d.levels[j]
	if l.at < len(l.ids) {
		d.Steps++
		d.binding[l.rest[0]] = l.ids[l.at]
		l.at++
		return true
	}
	l.ids, l.at = nil, 0
	if l.ways.state == waysFollow {
		return d.follow(l, j)
	}
	d.noteWay(l)
	for l.cursor.Next() {
		d.Steps++
		l.tried = true
		if l.hop == nil && !l.probe && d.takeRun(l) {
			l.weight, l.product = factor{1, 1}, d.above(j)
			return true
		}
		if d.bindRest(l) && d.takeTuple(l) {
			l.product = d.above(j).times(l.weight)
			return true
		}
	}
	if l.ways.state == waysOpen {
		l.ways.state = waysKnown
	}
	if l.hop != nil && !l.reached {
		d.DeadEnds++
		if l.tried { // else looking it up again costs no more
			d.dead.add(l.below, l.sought[len(l.lead):])
		}
	}
	return false
}

// bindRest binds what the cursor of a level stands on. It is false where a variable
// is fixed to something else.
func (d *Deltas) bindRest(l *deltaLevel) bool {
	for i, v := range l.rest {
		id := l.cursor.Col(len(l.sought) + i)
		if !d.fits(v, id) {
			return false
		}
		d.binding[v] = id
	}
	return true
}

// noteWay keeps the tuple that the level is about to leave, if it led to the root.
func (d *Deltas) noteWay(l *deltaLevel) {
	if !l.leads || l.ways.state != waysOpen {
		return
	}
	l.leads = false
	for _, v := range l.rest {
		l.ways.rows = append(l.ways.rows, d.binding[v])
	}
	l.ways.rows = append(l.ways.rows, uint64(l.weight.here), uint64(l.weight.there))
	if len(l.ways.rows) > waysMax {
		l.ways.state = waysNone
	}
}

// follow is move along the ways that are known.
func (d *Deltas) follow(l *deltaLevel, j int) bool {
	n := len(l.rest)
	if l.ways.at == len(l.ways.rows) {
		l.ways.state = waysKnown
		return false
	}
	row := l.ways.rows[l.ways.at : l.ways.at+n+2]
	l.ways.at += n + 2
	d.Steps++
	for i, v := range l.rest {
		d.binding[v] = row[i]
	}
	l.weight = factor{int64(row[n]), int64(row[n+1])}
	l.product = d.above(j).times(l.weight)
	return true
}

// takeRun makes the rest of the cursor's run, if it is one of single ids that all
// weigh 1, what the level moves along.
func (d *Deltas) takeRun(l *deltaLevel) bool {
	if len(l.rest) != 1 {
		return false
	}
	ids, weights := l.cursor.Run()
	if ids == nil || weights != nil && !l.node.unit {
		return false
	}
	l.cursor.Skip()
	l.ids, l.at = ids, 1
	d.binding[l.rest[0]] = ids[0]
	return true
}

// takeTuple finds the weights of the tuple that is bound. It is false for one
// that is dead, or that starts the pass itself.
func (d *Deltas) takeTuple(l *deltaLevel) bool {
	foreign := l.hop != nil && l.hop.index != nil
	if foreign || l.probe {
		l.tuple = l.node.tuple(l.tuple[:0], d.binding)
	}
	w := int64(0)
	if foreign {
		w = l.here.space.Get(l.here.root, l.tuple)
	} else {
		w = l.cursor.Weight()
	}
	if w == 0 {
		d.DeadEnds++
		return false
	}
	w = l.node.count(w)
	l.weight = factor{w, w}
	if !l.probe {
		return true
	}
	l.weight.there = l.node.count(l.there.space.Get(l.there.root, l.tuple))
	if l.owner && d.owns(l, l.weight) {
		d.skips++
		return false
	}
	return true
}

// deadMax bounds how many dead keys are kept.
const deadMax = 1 << 16

// deadKeys are, by node, the keys from which no way leads up that the pass is to
// take: it depends on nothing but the key, because all nodes on the way up come
// before any seed below.
type deadKeys struct {
	one  []map[uint64]struct{} // keys of one column
	many []map[string]struct{} // other keys
	n    int
	buf  []byte
}

func newDeadKeys(q *Query) deadKeys {
	return deadKeys{one: make([]map[uint64]struct{}, len(q.nodes)), many: make([]map[string]struct{}, len(q.nodes))}
}

func (k *deadKeys) encode(key []uint64) []byte {
	k.buf = k.buf[:0]
	for _, id := range key {
		k.buf = binary.LittleEndian.AppendUint64(k.buf, id)
	}
	return k.buf
}

func (k *deadKeys) has(node int, key []uint64) bool {
	if k.n == 0 {
		return false
	}
	if len(key) == 1 {
		_, ok := k.one[node][key[0]]
		return ok
	}
	_, ok := k.many[node][string(k.encode(key))]
	return ok
}

func (k *deadKeys) add(node int, key []uint64) {
	if k.n == deadMax {
		k.clear()
	}
	k.n++
	if len(key) == 1 {
		if k.one[node] == nil {
			k.one[node] = make(map[uint64]struct{})
		}
		k.one[node][key[0]] = struct{}{}
		return
	}
	if k.many[node] == nil {
		k.many[node] = make(map[string]struct{})
	}
	k.many[node][string(k.encode(key))] = struct{}{}
}

func (k *deadKeys) clear() {
	if k.n == 0 {
		return
	}
	for i := range k.one {
		clear(k.one[i])
		clear(k.many[i])
	}
	k.n = 0
}
