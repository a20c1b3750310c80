package bench

import "slices"

// The programs in this file are what somebody would write by hand for one
// query: adjacency lists, and of each inner node of the join tree the edges
// that have a partner in every child. They keep what is needed to enumerate
// every answer without a dead end, and nothing else: one goroutine, no
// snapshots, no log, no dictionary, no multiplicities.

// lists maps a vertex to its neighbours: through a map, or, when vertices are
// known to be dense, through an array.
type lists struct {
	sparse map[uint32][]uint32
	dense  [][]uint32
	// hubs has the place of each neighbour in a long list, so that taking one
	// out of the list of a hub does not search it.
	hubs map[uint32]map[uint32]int
}

// A list gets an index when it grows to hubDegree, where searching it costs
// more, and loses it at half of that.
const hubDegree = 256

// newLists makes empty lists, over an array when vertices is not 0.
func newLists(vertices int) *lists {
	if vertices > 0 {
		return &lists{dense: make([][]uint32, vertices)}
	}
	return &lists{sparse: make(map[uint32][]uint32)}
}

func (l *lists) of(v uint32) []uint32 {
	if l.dense != nil {
		return l.dense[v]
	}
	return l.sparse[v]
}

// add reports whether v had no neighbour before.
func (l *lists) add(v, to uint32) bool {
	list := l.of(v)
	if len(list) >= hubDegree/2 {
		l.givePlace(v, list, to)
	}
	list = append(list, to)
	if l.dense != nil {
		l.dense[v] = list
	} else {
		l.sparse[v] = list
	}
	return len(list) == 1
}

// givePlace notes that a neighbour is going to stand behind a list that may
// have an index.
//
//go:noinline
func (l *lists) givePlace(v uint32, list []uint32, to uint32) {
	if at := l.index(v, list); at != nil {
		at[to] = len(list)
	}
}

// index is the index of a list, nil if it is not long enough to have one.
func (l *lists) index(v uint32, list []uint32) map[uint32]int {
	at := l.hubs[v]
	if at != nil || len(list) < hubDegree {
		return at
	}
	at = make(map[uint32]int, 2*len(list))
	for i, to := range list {
		at[to] = i
	}
	if l.hubs == nil {
		l.hubs = make(map[uint32]map[uint32]int)
	}
	l.hubs[v] = at
	return at
}

// remove takes a neighbour out that is there and reports whether v has none
// left.
func (l *lists) remove(v, to uint32) bool {
	list := l.of(v)
	n := len(list) - 1
	if n >= hubDegree/2 {
		list[l.takePlace(v, list, to)] = list[n]
	} else {
		for i, x := range list {
			if x == to {
				list[i] = list[n]
				break
			}
		}
	}
	switch {
	case l.dense != nil:
		l.dense[v] = list[:n]
	case n == 0:
		delete(l.sparse, v)
	default:
		l.sparse[v] = list[:n]
	}
	return n == 0
}

// takePlace is where a neighbour stands in a list that may have an index, which
// learns that the last neighbour is going to stand there.
//
//go:noinline
func (l *lists) takePlace(v uint32, list []uint32, to uint32) int {
	at, n := l.index(v, list), len(list)-1
	if at == nil {
		return slices.Index(list, to)
	}
	i := at[to]
	at[list[n]] = i
	delete(at, to)
	if n == hubDegree/2 {
		delete(l.hubs, v)
	}
	return i
}

// set adds or removes and reports whether the list of v became non-empty or
// empty.
func (l *lists) set(insert bool, v, to uint32) bool {
	if insert {
		return l.add(v, to)
	}
	return l.remove(v, to)
}

func (l *lists) has(v uint32) bool { return len(l.of(v)) > 0 }

// each calls fn for every vertex with neighbours.
func (l *lists) each(fn func(v uint32, list []uint32)) {
	for v, list := range l.dense {
		if len(list) > 0 {
			fn(uint32(v), list)
		}
	}
	for v, list := range l.sparse {
		fn(v, list)
	}
}

// handProgram is a query by hand.
type handProgram interface {
	change(insert bool, e Edge)
	// enumerate hands every answer to out, in the order of the columns.
	enumerate(out *sink)
}

// newHand makes the program of a workload, over arrays when vertices is not 0.
func newHand(w *Workload, vertices int) handProgram {
	l := func() *lists { return newLists(vertices) }
	switch w.Name {
	case "path3":
		return &handPath3{l(), l(), l(), l(), l()}
	case "star":
		return &handStar{[4]*lists{l(), l(), l(), l()}, make(map[uint32]struct{})}
	case "snb":
		return &handSNB{l(), l(), l(), l(), l()}
	case "path3cnt":
		return &handGroups{l(), l(), newSums(vertices), newSums(vertices), newSums(vertices)}
	case "path3all":
		return &handTotal{l(), l(), newSums(vertices), newSums(vertices), 0}
	}
	return &handHop4{l(), l(), l(), l()}
}

// sink takes answers.
type sink struct{ n, sum uint64 }

// take is a call that cannot be optimised away, as that of a consumer.
//
//go:noinline
func (s *sink) take(a, b, c, d, e uint32) {
	s.n++
	s.sum += uint64(a) ^ uint64(b)<<8 ^ uint64(c)<<16 ^ uint64(d)<<24 ^ uint64(e)<<32
}

// takeGroup takes an answer of a query with counts.
//
//go:noinline
func (s *sink) takeGroup(x uint32, n int64) { s.n += uint64(group(x, n)) }

// sums maps a vertex to a number, as lists do to neighbours.
type sums struct {
	sparse map[uint32]int64
	dense  []int64
}

// newSums makes numbers that are 0, over an array when vertices is not 0.
func newSums(vertices int) *sums {
	if vertices > 0 {
		return &sums{dense: make([]int64, vertices)}
	}
	return &sums{sparse: make(map[uint32]int64)}
}

func (s *sums) of(v uint32) int64 {
	if s.dense != nil {
		return s.dense[v]
	}
	return s.sparse[v]
}

func (s *sums) add(v uint32, n int64) {
	if s.dense != nil {
		s.dense[v] += n
		return
	}
	if n += s.sparse[v]; n != 0 {
		s.sparse[v] = n
	} else {
		delete(s.sparse, v)
	}
}

// each calls fn for every vertex whose number is not 0.
func (s *sums) each(fn func(v uint32, n int64)) {
	for v, n := range s.dense {
		if n != 0 {
			fn(uint32(v), n)
		}
	}
	for v, n := range s.sparse {
		fn(v, n)
	}
}

// handGroups counts the answers of path3 by x.
type handGroups struct {
	xs, ys             *lists // of y by a, of z by b
	ends, tails, count *sums  // of z by c, of y by b and c, of x
}

func (p *handGroups) change(insert bool, e Edge) {
	n := int64(1)
	if !insert {
		n = -1
	}
	switch e.Rel {
	case 0:
		p.xs.set(insert, e.Dst, e.Src)
		if t := p.tails.of(e.Dst); t != 0 {
			p.count.add(e.Src, n*t)
		}
	case 1:
		p.ys.set(insert, e.Dst, e.Src)
		if t := p.ends.of(e.Dst); t != 0 {
			p.addTail(e.Src, n*t)
		}
	case 2:
		p.ends.add(e.Src, n)
		for _, y := range p.ys.of(e.Src) {
			p.addTail(y, n)
		}
	}
}

// addTail changes the number of ways from y on.
func (p *handGroups) addTail(y uint32, n int64) {
	p.tails.add(y, n)
	for _, x := range p.xs.of(y) {
		p.count.add(x, n)
	}
}

func (p *handGroups) enumerate(out *sink) { p.count.each(out.takeGroup) }

// handTotal counts all answers of path3. It reads the neighbours of an edge in place
// of keeping sums over them.
type handTotal struct {
	zs, ys       *lists // of y and of z, by b
	starts, ends *sums  // of y by a, of z by c
	total        int64
}

func (p *handTotal) change(insert bool, e Edge) {
	n := int64(1)
	if !insert {
		n = -1
	}
	switch e.Rel {
	case 0:
		p.starts.add(e.Dst, n)
		for _, z := range p.zs.of(e.Dst) {
			p.total += n * p.ends.of(z)
		}
	case 1:
		p.zs.set(insert, e.Src, e.Dst)
		p.ys.set(insert, e.Dst, e.Src)
		p.total += n * p.starts.of(e.Src) * p.ends.of(e.Dst)
	case 2:
		p.ends.add(e.Src, n)
		for _, y := range p.ys.of(e.Src) {
			p.total += n * p.starts.of(y)
		}
	}
}

func (p *handTotal) enumerate(out *sink) { out.takeGroup(0, p.total) }

// handPath3 is a(x, y), b(y, z), c(z, w) with root b.
type handPath3 struct {
	xs, zs, ys, ws *lists // of y, of y, of z, of z
	live           *lists // z by y: edges of b with partners in a and c
}

func (p *handPath3) change(insert bool, e Edge) {
	switch e.Rel {
	case 0:
		y := e.Dst
		if p.xs.set(insert, y, e.Src) {
			for _, z := range p.zs.of(y) {
				if p.ws.has(z) {
					p.live.set(insert, y, z)
				}
			}
		}
	case 1:
		y, z := e.Src, e.Dst
		p.zs.set(insert, y, z)
		p.ys.set(insert, z, y)
		if p.xs.has(y) && p.ws.has(z) {
			p.live.set(insert, y, z)
		}
	case 2:
		z := e.Src
		if p.ws.set(insert, z, e.Dst) {
			for _, y := range p.ys.of(z) {
				if p.xs.has(y) {
					p.live.set(insert, y, z)
				}
			}
		}
	}
}

func (p *handPath3) enumerate(out *sink) {
	p.live.each(func(y uint32, zs []uint32) {
		xs := p.xs.of(y)
		for _, z := range zs {
			ws := p.ws.of(z)
			for _, x := range xs {
				for _, w := range ws {
					out.take(x, y, z, w, 0)
				}
			}
		}
	})
}

// handStar is four relations that share their first column.
type handStar struct {
	leaves [4]*lists
	live   map[uint32]struct{} // centers with leaves in all four
}

func (p *handStar) change(insert bool, e Edge) {
	c := e.Src
	if !p.leaves[e.Rel].set(insert, c, e.Dst) {
		return
	}
	for i := range p.leaves {
		if i != int(e.Rel) && !p.leaves[i].has(c) {
			return
		}
	}
	if insert {
		p.live[c] = struct{}{}
	} else {
		delete(p.live, c)
	}
}

func (p *handStar) enumerate(out *sink) {
	for c := range p.live {
		ps, qs, ss, ts := p.leaves[0].of(c), p.leaves[1].of(c), p.leaves[2].of(c), p.leaves[3].of(c)
		for _, a := range ps {
			for _, b := range qs {
				for _, s := range ss {
					for _, t := range ts {
						out.take(c, a, b, s, t)
					}
				}
			}
		}
	}
}

// handSNB is hasCreator(v, x), hasCreator(z, y), hasReply(v, z), likedBy(z, w)
// with root hasReply. v and z differ in every reply.
type handSNB struct {
	creators, likes, replies, parents *lists // by message
	live                              *lists // z by v: replies with all partners
}

func (p *handSNB) change(insert bool, e Edge) {
	m := e.Src
	switch e.Rel {
	case 0:
		if !p.creators.set(insert, m, e.Dst) {
			return
		}
		for _, z := range p.replies.of(m) {
			if p.creators.has(z) && p.likes.has(z) {
				p.live.set(insert, m, z)
			}
		}
		if p.likes.has(m) {
			p.setParents(insert, m)
		}
	case 1:
		z := e.Dst
		p.replies.set(insert, m, z)
		p.parents.set(insert, z, m)
		if p.creators.has(m) && p.creators.has(z) && p.likes.has(z) {
			p.live.set(insert, m, z)
		}
	case 2:
		if p.likes.set(insert, m, e.Dst) && p.creators.has(m) {
			p.setParents(insert, m)
		}
	}
}

// setParents wakes the replies that z is the reply of.
func (p *handSNB) setParents(insert bool, z uint32) {
	for _, v := range p.parents.of(z) {
		if p.creators.has(v) {
			p.live.set(insert, v, z)
		}
	}
}

func (p *handSNB) enumerate(out *sink) {
	p.live.each(func(v uint32, zs []uint32) {
		xs := p.creators.of(v)
		for _, z := range zs {
			ys, ws := p.creators.of(z), p.likes.of(z)
			for _, x := range xs {
				for _, y := range ys {
					for _, w := range ws {
						out.take(v, x, z, y, w)
					}
				}
			}
		}
	})
}

// handHop4 is r(a, b), r(b, c), r(c, d), r(d, e) with root r(b, c), whose
// children are r(a, b) and r(c, d), which has the child r(d, e).
//
// An insertion goes through the four atoms from the leaf d, e up to a, b, each
// seeing the change of those before it and not that of those behind; a deletion
// goes the same way back. out and in serve all four atoms, because out is read
// for the first and the last only, and in for the others.
type handHop4 struct {
	out, in *lists
	third   *lists // d by c: edges with a successor
	second  *lists // c by b: edges with a predecessor and a live successor
}

func (p *handHop4) change(insert bool, e Edge) {
	s, t := e.Src, e.Dst
	if insert {
		if p.out.add(s, t) {
			for _, c := range p.in.of(s) {
				p.setThird(true, c, s)
			}
		}
		if p.out.has(t) {
			p.setThird(true, s, t)
		}
	}
	if !insert && p.in.remove(t, s) {
		p.setSuccessors(false, t)
	}
	if p.in.has(s) && p.third.has(t) {
		p.second.set(insert, s, t)
	}
	if insert && p.in.add(t, s) {
		p.setSuccessors(true, t)
	}
	if !insert {
		if p.out.has(t) {
			p.setThird(false, s, t)
		}
		if p.out.remove(s, t) {
			for _, c := range p.in.of(s) {
				p.setThird(false, c, s)
			}
		}
	}
}

// setThird puts an edge in or out of third, and wakes the edges into c if that
// was the first or the last of its group.
func (p *handHop4) setThird(insert bool, c, d uint32) {
	if !p.third.set(insert, c, d) {
		return
	}
	for _, b := range p.in.of(c) {
		if p.in.has(b) {
			p.second.set(insert, b, c)
		}
	}
}

// setSuccessors wakes the edges out of b, which got or lost its predecessors.
func (p *handHop4) setSuccessors(insert bool, b uint32) {
	for _, c := range p.out.of(b) {
		if p.third.has(c) {
			p.second.set(insert, b, c)
		}
	}
}

func (p *handHop4) enumerate(out *sink) {
	p.second.each(func(b uint32, cs []uint32) {
		as := p.in.of(b)
		for _, c := range cs {
			for _, d := range p.third.of(c) {
				es := p.out.of(d)
				for _, a := range as {
					for _, e := range es {
						out.take(a, b, c, d, e)
					}
				}
			}
		}
	})
}
