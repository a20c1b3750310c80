package bench

import (
	"errors"
	"fmt"
	"slices"

	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/views"
)

// besides is a stream of some edges in the window with others beside it, which have no
// vertex in common with it and stay. So a state may be large without the changes
// being others, and these have the same ids.
func besides(w *Workload, window, others, slides int) *Stream {
	s := w.Stream(window, slides, float64(window)/200_000)
	first := uint32(s.Vertices())
	var far []Edge
	if others > 0 {
		far = w.Stream(others, 0, float64(others)/200_000).Edges
	}
	for i := range far {
		far[i].Src += first
		far[i].Dst += first
	}
	s.Edges = slices.Concat(s.Edges[:window], far, s.Edges[window:])
	s.Window += others
	s.ids = idsOf(s)
	return s
}

// apart are two epochs, or a sequence of them, whose changes are walked.
type apart struct {
	b      *byEngine
	q      *views.Query
	pinned []*rootvec.Vector
	was    *views.Bound
	is     *views.Bound
	d      *views.Deltas
}

// startApart loads a stream and slides it by one in each epoch. It pins the first epoch
// and the last, or all of them.
func startApart(s *Stream, all bool) (*apart, error) {
	p, err := startEngine(s)
	if err == nil {
		err = p.load()
	}
	if err != nil {
		return nil, err
	}
	a := &apart{b: p.(*byEngine)}
	a.pin()
	for i := range s.Slides() {
		if err := p.slide(i, i+1); err != nil {
			return nil, err
		}
		if all || i == s.Slides()-1 {
			a.pin()
		}
	}
	first := a.pinned[0]
	a.q = first.Catalog.(*epoch.Schema).Views[s.Name]
	a.was, a.is = a.q.Bind(first.Space, first.Roots), a.q.Bind(first.Space, first.Roots)
	a.d = a.q.Deltas(a.was, a.is)
	return a, nil
}

func (a *apart) pin() { a.pinned = append(a.pinned, a.b.e.Current.Pin()) }

func (a *apart) end() {
	for _, v := range a.pinned {
		a.b.e.Current.Unpin(v)
	}
}

// walk hands the changes from each pinned epoch to the next to out, and returns how
// many tuples were looked at.
func (a *apart) walk(out *changeSink) (steps int, err error) {
	for i := range a.pinned[1:] {
		old, now := a.pinned[i], a.pinned[i+1]
		a.was.Rebind(old.Space, old.Roots)
		a.is.Rebind(now.Space, now.Roots)
		a.d.Rebind(a.was, a.is)
		if err := a.b.takeChanges(a.q, a.d, out); err != nil {
			return 0, err
		}
		steps += a.d.Steps
	}
	return steps, nil
}

// measureApart is the CPU time of the changes between epochs, far apart or each with
// the next. The changed content is the facts and the answers that differ: what
// nobody can do without looking at who wants to tell the changes from the states.
func measureApart(w *Workload, window, others, epochs int, all bool) (figures []Figure, err error) {
	s := besides(w, window, others, epochs)
	a, err := startApart(s, all)
	if err != nil {
		return nil, err
	}
	defer func() { a.end(); err = errors.Join(err, a.b.close()) }()
	if _, err := a.walk(new(changeSink)); err != nil {
		return nil, err
	}
	var out changeSink
	const times = 3
	steps, t := 0, cpuSeconds()
	for range times {
		if steps, err = a.walk(&out); err != nil {
			return nil, err
		}
	}
	took := (cpuSeconds() - t) / times
	if want := s.Answers(epochs) - s.Answers(0); out.net != times*want {
		return nil, fmt.Errorf("the changes add up to %d answers, the reference is %d", out.net/times, want)
	}
	changes := float64(out.n) / times
	content := changes + float64(2*epochs)
	return []Figure{
		{"walk", took * 1e3, "ms"},
		{"answer", took * 1e9 / max(1, changes), "ns"},
		{"fact", took * 1e9 / float64(2*epochs), "ns"},
		{"answers that differ", changes, ""},
		{"facts that differ", float64(2 * epochs), ""},
		{"steps by content", float64(steps) / content, ""},
	}, nil
}

// apartCases are the measurements of epochs that are near or far.
func apartCases(window int) (cases []*Case) {
	epochs := window / 10
	for _, w := range workloads[:3] {
		for _, others := range []int{0, 9 * window} {
			for _, how := range []string{"apart", "one by one"} {
				all := how == "one by one"
				contender := fmt.Sprintf("%d edges, %s", window+others, how)
				cases = append(cases, &Case{"followers", fmt.Sprintf("far, %s, %d epochs", w.Name, epochs), contender, func(string) ([]Figure, error) {
					return measureApart(w, window, others, epochs, all)
				}})
			}
		}
	}
	return cases
}
