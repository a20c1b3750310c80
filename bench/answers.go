package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/views"
)

// Readers of answers, from nested loops to decoded terms.
const (
	// readSlices are nested loops over the slices of the program by hand.
	readSlices = "slices"
	// readViews is the enumeration of the views: all ids and the multiplicity.
	readViews = "views"
	// readRows is Snapshot.Answers: the multiplicity.
	readRows = "rows"
	// readTerms is Snapshot.Answers: the terms of all columns.
	readTerms = "terms"
)

// enumeration is a stream of which the first window is loaded, with a reader.
type enumeration struct {
	s    *Stream
	read func() (answers int64, err error)
	end  func() error
}

// startEnumeration loads a window of a workload for a reader.
func startEnumeration(w *Workload, edges int, reader string) (*enumeration, error) {
	s := w.Stream(edges, 0, float64(edges)/200000)
	e := &enumeration{s: s, end: func() error { return nil }}
	c := map[string]Contender{readSlices: Dense, readViews: Engine, readRows: API, readTerms: API}[reader]
	p, err := start(c, s)
	if err != nil {
		return nil, err
	}
	if err := p.load(); err != nil {
		return nil, err
	}
	switch p := p.(type) {
	case *byHand:
		e.read = p.answers
	case *byEngine:
		e.read = func() (int64, error) {
			b, head, end := p.pinned()
			defer end()
			return readBound(b, head)
		}
	case *byAPI:
		e.end = p.close
		e.read = func() (int64, error) { return readSnapshot(p.db, s, reader == readTerms) }
	}
	return e, nil
}

// pinned binds the query to the last epoch until end is called, and tells the
// variables of its columns.
func (b *byEngine) pinned() (bound *views.Bound, head []query.Var, end func()) {
	v := b.e.Current.Pin()
	q := v.Catalog.(*epoch.Schema).Views[b.s.Name]
	return q.Bind(v.Space, v.Roots), q.Plan.Query.Head, func() { b.e.Current.Unpin(v) }
}

// readBound enumerates on the level of the views.
func readBound(b *views.Bound, head []query.Var) (int64, error) {
	var out sink
	var row [5]uint32
	for a := b.Answers(); a.Next(); {
		for i, v := range head {
			row[i] = uint32(a.Value(v))
		}
		if _, err := a.Multiplicity(); err != nil {
			return 0, err
		}
		out.take(row[0], row[1], row[2], row[3], row[4])
	}
	return int64(out.n), nil
}

// readSnapshot enumerates through the public API.
func readSnapshot(db *triegs.DB, s *Stream, terms bool) (n int64, err error) {
	snap, err := db.Snapshot()
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	wrong := 0
	for row, err := range snap.Answers(s.Name) {
		if err != nil {
			return 0, err
		}
		n += row.Multiplicity()
		for i := 0; terms && i < s.Columns; i++ {
			if row.Term(i).IsZero() {
				wrong++
			}
		}
	}
	if wrong > 0 {
		return 0, fmt.Errorf("%d terms are missing", wrong)
	}
	return n, nil
}

// measureAnswers is the CPU time of an answer.
func measureAnswers(w *Workload, edges int, reader string) ([]Figure, error) {
	e, err := startEnumeration(w, edges, reader)
	if err != nil {
		return nil, err
	}
	want := e.s.Answers(0)
	if n, err := e.read(); err != nil || n != want {
		return nil, fmt.Errorf("%d answers (%w), the reference is %d", n, err, want)
	}
	const times = 3
	t := cpuSeconds()
	for range times {
		if _, err := e.read(); err != nil {
			return nil, err
		}
	}
	perAnswer := (cpuSeconds() - t) * 1e9 / float64(times*want)
	return []Figure{{"answer", perAnswer, "ns"}}, e.end()
}

// measureDelay is the time on the wall between answers, the reading of the
// clock included, which is given as well.
func measureDelay(w *Workload, edges int) ([]Figure, error) {
	s := w.Stream(edges, 0, float64(edges)/200000)
	p, err := startEngine(s)
	if err != nil {
		return nil, err
	}
	if err := p.load(); err != nil {
		return nil, err
	}
	b, _, end := p.(*byEngine).pinned()
	defer end()
	const most = 2_000_000
	delays := delaysOf(b, make([]int64, 0, most), most/2) // warms up
	delays = delaysOf(b, delays[:0], most)
	if n := min(s.Answers(0), most); int64(len(delays)) != n || n == 0 {
		return nil, fmt.Errorf("%d answers, the reference is %d", len(delays), n)
	}
	slices.Sort(delays)
	at := func(q float64) float64 { return float64(delays[int(q*float64(len(delays)-1))]) }
	figures := []Figure{
		{"median", at(.5), "ns"}, {"p99", at(.99), "ns"}, {"p99.9", at(.999), "ns"},
	}
	clock := time.Now()
	for range 1000 {
		delays[0] += int64(time.Since(clock))
	}
	perClock := float64(time.Since(clock)) / 1000
	return append(figures, Figure{"clock", perClock, "ns"}, Figure{"answers", float64(len(delays)), ""}), nil
}

// delaysOf appends the time before each of the first answers to dst.
func delaysOf(b *views.Bound, dst []int64, most int) []int64 {
	origin := time.Now()
	last := time.Since(origin)
	for a := b.Answers(); len(dst) < most && a.Next(); {
		now := time.Since(origin)
		dst = append(dst, int64(now-last))
		last = now
	}
	return dst
}

// appendEdges appends edges of a stream as single epochs of n insertions.
func appendEdges(db *triegs.DB, s *Stream, from, to, n int) error {
	b := &byAPI{s: s, db: db}
	for i := from; i < to; i += n {
		b.begin(n)
		for j := i; j < min(i+n, to); j++ {
			b.event(triegs.Insert, j)
		}
		if err := b.append(); err != nil {
			return err
		}
	}
	return nil
}

// openWith opens a store with the query of a workload; dir "" is in memory.
func openWith(dir string, w *Workload) (*triegs.DB, error) {
	db, err := triegs.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	if _, err := db.Register(context.Background(), w.Name, w.Query); err != nil {
		return nil, err
	}
	return db, nil
}
