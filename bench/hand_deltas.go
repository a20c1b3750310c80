package bench

import "fmt"

// The programs in this file are what somebody would write by hand for the changes
// of the answers of one query: adjacency lists, and nested loops over those that an
// edge is joined with. They keep no live parts, because nobody enumerates answers,
// and know no epochs: what comes and goes within one is told twice.

// changeSink takes changes of answers.
type changeSink struct {
	n   uint64 // changes
	net int64  // answers that have come, without those that have gone
	sum uint64
}

// take is a call that cannot be optimised away, as that of a consumer. d is how many
// times more the answer is there.
//
//go:noinline
func (s *changeSink) take(d int64, a, b, c, e, f uint32) {
	s.n++
	s.net += d
	s.sum += uint64(d) * (uint64(a) ^ uint64(b)<<8 ^ uint64(c)<<16 ^ uint64(e)<<24 ^ uint64(f)<<32)
}

// handDeltas is a query by hand that tells changes. They go to out unless it is nil.
type handDeltas interface {
	change(insert bool, e Edge, out *changeSink)
}

// newHandDeltas makes the program of a workload, over arrays when vertices is not 0.
func newHandDeltas(w *Workload, vertices int) (handDeltas, error) {
	l := func() *lists { return newLists(vertices) }
	switch w.Name {
	case "path3":
		return &deltasPath3{l(), l(), l(), l()}, nil
	case "star":
		return &deltasStar{l(), l(), l(), l()}, nil
	case "snb":
		return &deltasSNB{l(), l(), l(), l()}, nil
	}
	return nil, fmt.Errorf("no program by hand tells the changes of %s", w.Name)
}

// sign is how many times more an answer is there.
func sign(insert bool) int64 {
	if insert {
		return 1
	}
	return -1
}

// deltasPath3 is a(x, y), b(y, z), c(z, w).
type deltasPath3 struct{ xs, zs, ys, ws *lists } // of y, of y, of z, of z

func (p *deltasPath3) change(insert bool, e Edge, out *changeSink) {
	if out != nil {
		p.tell(sign(insert), e, out)
	}
	switch e.Rel {
	case 0:
		p.xs.set(insert, e.Dst, e.Src)
	case 1:
		p.zs.set(insert, e.Src, e.Dst)
		p.ys.set(insert, e.Dst, e.Src)
	case 2:
		p.ws.set(insert, e.Src, e.Dst)
	}
}

func (p *deltasPath3) tell(d int64, e Edge, out *changeSink) {
	switch e.Rel {
	case 0:
		for _, z := range p.zs.of(e.Dst) {
			for _, w := range p.ws.of(z) {
				out.take(d, e.Src, e.Dst, z, w, 0)
			}
		}
	case 1:
		ws := p.ws.of(e.Dst)
		for _, x := range p.xs.of(e.Src) {
			for _, w := range ws {
				out.take(d, x, e.Src, e.Dst, w, 0)
			}
		}
	case 2:
		for _, y := range p.ys.of(e.Src) {
			for _, x := range p.xs.of(y) {
				out.take(d, x, y, e.Src, e.Dst, 0)
			}
		}
	}
}

// deltasStar is four relations that share their first column.
type deltasStar [4]*lists

func (p *deltasStar) change(insert bool, e Edge, out *changeSink) {
	if out != nil {
		var l [4][]uint32
		for i := range l {
			l[i] = p[i].of(e.Src)
		}
		one := [1]uint32{e.Dst}
		l[e.Rel] = one[:]
		tellProduct(sign(insert), e.Src, &l, out)
	}
	p[e.Rel].set(insert, e.Src, e.Dst)
}

func tellProduct(d int64, c uint32, l *[4][]uint32, out *changeSink) {
	for _, p := range l[0] {
		for _, q := range l[1] {
			for _, s := range l[2] {
				for _, t := range l[3] {
					out.take(d, c, p, q, s, t)
				}
			}
		}
	}
}

// deltasSNB is hasCreator(v, x), hasCreator(z, y), hasReply(v, z), likedBy(z, w). v
// and z differ in every reply.
type deltasSNB struct{ creators, likes, replies, parents *lists }

func (p *deltasSNB) change(insert bool, e Edge, out *changeSink) {
	if out != nil {
		p.tell(sign(insert), e, out)
	}
	switch e.Rel {
	case 0:
		p.creators.set(insert, e.Src, e.Dst)
	case 1:
		p.replies.set(insert, e.Src, e.Dst)
		p.parents.set(insert, e.Dst, e.Src)
	case 2:
		p.likes.set(insert, e.Src, e.Dst)
	}
}

func (p *deltasSNB) tell(d int64, e Edge, out *changeSink) {
	switch e.Rel {
	case 0:
		p.tellParent(d, e.Src, e.Dst, out)
		p.tellReply(d, e.Src, e.Dst, out)
	case 1:
		ys, ws := p.creators.of(e.Dst), p.likes.of(e.Dst)
		if len(ys) == 0 || len(ws) == 0 {
			return
		}
		for _, x := range p.creators.of(e.Src) {
			for _, y := range ys {
				for _, w := range ws {
					out.take(d, e.Src, x, e.Dst, y, w)
				}
			}
		}
	case 2:
		ys := p.creators.of(e.Src)
		if len(ys) == 0 {
			return
		}
		for _, v := range p.parents.of(e.Src) {
			for _, x := range p.creators.of(v) {
				for _, y := range ys {
					out.take(d, v, x, e.Src, y, e.Dst)
				}
			}
		}
	}
}

// tellParent tells the answers in which x is the creator of the message v that is
// replied to.
func (p *deltasSNB) tellParent(d int64, v, x uint32, out *changeSink) {
	for _, z := range p.replies.of(v) {
		ws := p.likes.of(z)
		if len(ws) == 0 {
			continue
		}
		for _, y := range p.creators.of(z) {
			for _, w := range ws {
				out.take(d, v, x, z, y, w)
			}
		}
	}
}

// tellReply tells the answers in which y is the creator of the reply z.
func (p *deltasSNB) tellReply(d int64, z, y uint32, out *changeSink) {
	ws := p.likes.of(z)
	if len(ws) == 0 {
		return
	}
	for _, v := range p.parents.of(z) {
		for _, x := range p.creators.of(v) {
			for _, w := range ws {
				out.take(d, v, x, z, y, w)
			}
		}
	}
}
