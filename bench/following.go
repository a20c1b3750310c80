package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/views"
)

// Readers of changes.
const (
	// followIDs is the walk of the views over every epoch: all ids.
	followIDs = "ids"
	// followTerms is Update.Changes over every epoch: the terms of all columns.
	followTerms = "terms"
	// followNewest is the same over what is newest whenever it comes to it.
	followNewest = "terms, newest"
)

// followersLag is how many updates the writer may be ahead of the slowest follower, and
// at least four epochs: those who keep up, on a machine that has a core for each.
const followersLag = 800

// lag is followersLag in epochs.
func (m *following) lag() uint64 { return uint64(max(4, followersLag/m.Updates)) }

// following is a stream whose changes some followers take while it is written.
type following struct {
	Run
	s         *Stream
	p         program
	followers []*follower
	all       sync.WaitGroup
}

// follower takes changes in a goroutine of its own.
type follower struct {
	out   changeSink
	at    atomic.Uint64 // the epoch that was taken last
	moved chan struct{} // of capacity 1, filled when at has moved
	until atomic.Uint64 // the epoch behind which it ends
	err   error
}

// take notes that an epoch was taken, and reports whether there are more to come.
func (f *follower) take(epoch uint64) bool {
	f.at.Store(epoch)
	select {
	case f.moved <- struct{}{}:
	default:
	}
	return epoch < f.until.Load()
}

// await waits until an epoch was taken.
func (f *follower) await(epoch uint64) {
	for f.at.Load() < epoch {
		<-f.moved
	}
}

// start begins to follow.
func (m *following) start(how string, followers int) error {
	for range followers {
		f := &follower{moved: make(chan struct{}, 1)}
		f.until.Store(1 << 62)
		m.followers = append(m.followers, f)
		run, err := m.open(how, f)
		if err != nil {
			return err
		}
		f.at.Store(m.epoch())
		m.all.Go(func() {
			if f.err = run(); f.err != nil {
				f.take(1 << 63) // nobody waits for it
			}
		})
	}
	return nil
}

// epoch is the last one published.
func (m *following) epoch() uint64 {
	if p, ok := m.p.(*byEngine); ok {
		return p.e.Current.Epoch()
	}
	return uint64(m.p.(*byAPI).last)
}

// open makes what a follower runs.
func (m *following) open(how string, f *follower) (run func() error, err error) {
	if p, ok := m.p.(*byEngine); ok {
		return p.follow(f), nil
	}
	sub, err := m.p.(*byAPI).db.Subscribe(context.Background(), m.s.Name, triegs.SubscribeOptions{PerEpoch: how == followTerms})
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(f.read(sub, m.s.Columns), sub.Close()) }, nil
}

// read takes the updates of a subscription.
func (f *follower) read(sub *triegs.Subscription, columns int) error {
	var row [5]uint32
	for u, err := range sub.Updates() {
		if err != nil {
			return err
		}
		for c, err := range u.Changes() {
			if err != nil {
				return err
			}
			for i := range columns {
				n, _ := c.Row.Term(i).AsInt()
				row[i] = uint32(n)
			}
			f.out.take(c.New-c.Old, row[0], row[1], row[2], row[3], row[4])
		}
		if !f.take(uint64(u.Epoch)) {
			break
		}
	}
	return nil
}

// follow makes the follower on the level of the views.
func (b *byEngine) follow(f *follower) func() error {
	at := &rootvec.Follower{Each: true, Buffer: 1 << 20, Holds: func(rootvec.Catalog) bool { return true }}
	old := b.e.Current.Follow(at, func(rootvec.Catalog) {})
	q := old.Catalog.(*epoch.Schema).Views[b.s.Name]
	was, is := q.Bind(old.Space, old.Roots), q.Bind(old.Space, old.Roots)
	d := q.Deltas(was, is)
	return func() error {
		defer func() {
			b.e.Current.Leave(at)
			b.e.Current.Unpin(old)
		}()
		for more := true; more; {
			published := b.e.Published()
			now, _ := b.e.Current.Next(at)
			if now == nil {
				<-published
				continue
			}
			is.Rebind(now.Space, now.Roots)
			d.Rebind(was, is)
			if err := b.takeChanges(q, d, &f.out); err != nil {
				return err
			}
			was, is = is, was
			if b.e.Current.Unpin(old) {
				b.e.TryCollect()
			}
			b.e.Current.Move(at, now.Epoch)
			old = now
			more = f.take(now.Epoch)
		}
		return nil
	}
}

// takeChanges hands the changes of a walk to out, as vertices.
func (b *byEngine) takeChanges(q *views.Query, d *views.Deltas, out *changeSink) error {
	var row [5]uint32
	head := q.Plan.Query.Head
	for d.Next() {
		for i, v := range head {
			row[i] = uint32(d.Value(v) - 1)
		}
		was, failed := d.Old()
		is, fails := d.New()
		if err := errors.Join(failed, fails); err != nil {
			return err
		}
		out.take(is-was, row[0], row[1], row[2], row[3], row[4])
	}
	return nil
}

// slides slides the window, never too far ahead of a follower, and waits in the end
// until all have taken everything.
func (m *following) slides(from, to int) error {
	for i := from; i < to; i += m.Updates / 2 {
		if err := m.p.slide(i, min(i+m.Updates/2, to)); err != nil {
			return err
		}
		if len(m.followers) == 0 {
			continue
		}
		if at, half := m.epoch(), m.lag()/2; at%half == 0 {
			m.await(at - half)
		}
	}
	m.await(m.epoch())
	return nil
}

func (m *following) await(epoch uint64) {
	for _, f := range m.followers {
		f.await(epoch)
	}
}

// end ends the followers behind the current epoch, with one more of which they learn
// it, and compares what they have taken with the reference: they began before the
// first slide.
func (m *following) end(slides int) error {
	last := m.epoch() + 1
	for _, f := range m.followers {
		f.until.Store(last)
	}
	if err := m.p.slide(slides, slides+1); err != nil {
		return err
	}
	m.all.Wait()
	want := m.s.Answers(slides+1) - m.s.Answers(0)
	for _, f := range m.followers {
		if f.err != nil {
			return f.err
		}
		if f.out.net != want {
			return fmt.Errorf("the changes add up to %d answers, the reference is %d", f.out.net, want)
		}
	}
	n, err := m.p.answers()
	if err == nil && n != m.s.Answers(slides+1) {
		err = fmt.Errorf("%d answers, the reference is %d", n, m.s.Answers(slides+1))
	}
	return err
}

// measureFollowing is what an update takes while so many followers take its changes.
func measureFollowing(r Run, how string, followers int) (figures []Figure, err error) {
	w, err := Find(r.Workload)
	if err != nil {
		return nil, err
	}
	s := w.Stream(r.Window, r.Warm+r.Slides+1, r.Scale)
	p, err := start(r.Contender, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	// The writer keeps its thread, whose CPU time is then its own.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := &following{Run: r, s: s, p: p}
	if err := p.load(); err != nil {
		return nil, err
	}
	if err := m.start(how, followers); err != nil {
		return nil, err
	}
	runtime.GC()
	if err := m.slides(0, r.Warm); err != nil {
		return nil, err
	}
	if figures, err = m.measure(); err != nil {
		return nil, err
	}
	return figures, m.end(r.Warm + r.Slides)
}

// measure measures the slides behind the warming up.
func (m *following) measure() ([]Figure, error) {
	changes := m.changes()
	before, err := m.p.stats()
	if err != nil {
		return nil, err
	}
	c0, w0, t0 := readCounters(), threadSeconds(), time.Now()
	if err := m.slides(m.Warm, m.Warm+m.Slides); err != nil {
		return nil, err
	}
	wall, writer, c1 := time.Since(t0).Seconds(), threadSeconds()-w0, readCounters()
	after, err := m.p.stats()
	if err != nil {
		return nil, err
	}
	n := float64(2 * m.Slides)
	k := float64(max(1, len(m.followers)))
	all := c1.cpu - c0.cpu
	reader := max(0, all-writer) / k
	figures := followFigures(n, all, writer, reader, wall)
	return append(figures,
		Figure{"changes an update", float64(m.changes()-changes) / n / k, ""},
		Figure{"writes an update", float64(after.Writes-before.Writes) / n, ""},
		Figure{"bytes an update", float64(c1.allocated-c0.allocated) / n, ""},
	), nil
}

// followFigures are times of n updates, all of them but wall CPU time: of all
// threads, of that of the writer, and of those of one reader. "Two cores" is what is
// to be had of two of them, if the readers are as many as keep one busy.
func followFigures(n, all, writer, reader, wall float64) []Figure {
	return []Figure{
		{"update", all * 1e9 / n, "ns"},
		{"writer", writer * 1e9 / n, "ns"},
		{"reader", reader * 1e9 / n, "ns"},
		{"two cores", max(all/2, writer, reader) * 1e9 / n, "ns"},
		{"wall", wall * 1e9 / n, "ns"},
	}
}

// changes is how many changes the followers have taken.
func (m *following) changes() (n uint64) {
	for _, f := range m.followers {
		n += f.out.n
	}
	return n
}

// measureHandDeltas is what an update of the program by hand takes that tells the
// changes.
func measureHandDeltas(r Run) ([]Figure, error) {
	w, err := Find(r.Workload)
	if err != nil {
		return nil, err
	}
	s := w.Stream(r.Window, r.Warm+r.Slides, r.Scale)
	vertices := 0
	if r.Contender == Dense {
		vertices = s.Vertices()
	}
	p, err := newHandDeltas(w, vertices)
	if err != nil {
		return nil, err
	}
	var out changeSink
	for _, e := range s.Live(0) {
		p.change(true, e, nil)
	}
	slides := func(from, to int) {
		for i := from; i < to; i++ {
			p.change(true, s.Edges[s.Window+i], &out)
			p.change(false, s.Edges[i], &out)
		}
	}
	runtime.GC()
	slides(0, r.Warm)
	changes := out.n
	c0, t0 := readCounters(), time.Now()
	slides(r.Warm, r.Warm+r.Slides)
	wall, c1 := time.Since(t0).Seconds(), readCounters()
	if want := s.Answers(r.Warm+r.Slides) - s.Answers(0); out.net != want {
		return nil, fmt.Errorf("the changes add up to %d answers, the reference is %d", out.net, want)
	}
	n, all := float64(2*r.Slides), c1.cpu-c0.cpu
	return append(
		[]Figure{{"update", all * 1e9 / n, "ns"}, {"two cores", all * 1e9 / n, "ns"}, {"wall", wall * 1e9 / n, "ns"}},
		Figure{"changes an update", float64(out.n-changes) / n, ""},
		Figure{"bytes an update", float64(c1.allocated-c0.allocated) / n, ""},
	), nil
}

// followCases are the measurements of followers: B2, one that takes every change,
// against the program by hand that tells them, and B1, what followers cost the writer.
func followCases(window int) (cases []*Case) {
	run := func(w *Workload, c Contender, updates int) Run {
		return Run{
			Workload: w.Name, Contender: c, Updates: updates, Window: window,
			Warm: window / 10, Slides: window * 2 / 5, Scale: float64(window) / 200_000,
		}
	}
	for _, w := range workloads[:3] {
		add := func(name, contender string, measure func() ([]Figure, error)) {
			cases = append(cases, &Case{"followers", name, contender, func(string) ([]Figure, error) { return measure() }})
		}
		name := fmt.Sprintf("changes, %s, 200 updates an epoch", w.Name)
		for _, c := range []Contender{Maps, Dense} {
			add(name, string(c), func() ([]Figure, error) { return measureHandDeltas(run(w, c, 2)) })
		}
		add(name, followIDs, func() ([]Figure, error) { return measureFollowing(run(w, Engine, 200), followIDs, 1) })
		for _, how := range []string{followTerms, followNewest} {
			add(name, how, func() ([]Figure, error) { return measureFollowing(run(w, API, 200), how, 1) })
		}
		for _, updates := range []int{2, 200} {
			for _, followers := range []int{0, 1, 8} {
				add(fmt.Sprintf("writer, %s, %d updates an epoch", w.Name, updates), fmt.Sprintf("%d followers", followers), func() ([]Figure, error) {
					return measureFollowing(run(w, API, updates), followTerms, followers)
				})
			}
		}
	}
	return cases
}
