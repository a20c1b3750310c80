package bench

import (
	"context"
	"fmt"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/internal/term"
)

// Contender is one of the programs that are measured.
type Contender string

// The contenders.
const (
	// Maps is the program by hand with maps.
	Maps Contender = "maps"
	// Dense is the program by hand with arrays over vertices.
	Dense Contender = "dense"
	// Engine is TrieGS from ids to published epochs, in memory.
	Engine Contender = "engine"
	// API is TrieGS from terms to published epochs through the public API, in
	// memory.
	API Contender = "api"
)

// byHand tells whether the contender is one of the programs by hand.
func (c Contender) byHand() bool { return c == Maps || c == Dense }

// Contenders lists them.
func Contenders() []Contender { return []Contender{Maps, Dense, Engine, API} }

// program is a contender at work on a stream.
type program interface {
	// load inserts the first window.
	load() error
	// slide takes the window from one slide to another as one epoch.
	slide(from, to int) error
	// answers is what Stream.Answers is compared with.
	answers() (int64, error)
	// stats may be called before load and after it.
	stats() (Internals, error)
	close() error
}

// Internals is what TrieGS says of itself.
type Internals struct {
	Writes     uint64 // tuples written to indexes and views
	Woken      uint64 // tuples recomputed because a partner group toggled
	TrieLive   int64  // bytes reachable from the last epoch
	TrieTotal  int64  // bytes of all tries, free space included
	Dictionary int64  // bytes
	Facts      int64  // bytes of the live contributions
}

// loadEpoch is the number of insertions in an epoch of a first window.
const loadEpoch = 2000

// start makes a contender ready for a stream.
func start(c Contender, s *Stream) (program, error) {
	switch c {
	case Maps:
		return &byHand{s, newHand(s.Workload, 0)}, nil
	case Dense:
		return &byHand{s, newHand(s.Workload, s.Vertices())}, nil
	case Engine:
		return startEngine(s)
	case API:
		return startAPI(s)
	}
	return nil, fmt.Errorf("no contender %q", c)
}

// byHand drives a program by hand.
type byHand struct {
	s *Stream
	p handProgram
}

func (b *byHand) load() error {
	for _, e := range b.s.Live(0) {
		b.p.change(true, e)
	}
	return nil
}

func (b *byHand) slide(from, to int) error {
	edges := b.s.Edges
	for i := from; i < to; i++ {
		b.p.change(true, edges[b.s.Window+i])
		b.p.change(false, edges[i])
	}
	return nil
}

func (b *byHand) answers() (int64, error) {
	var out sink
	b.p.enumerate(&out)
	return int64(out.n), nil
}

func (b *byHand) stats() (Internals, error) { return Internals{}, nil }

func (b *byHand) close() error { return nil }

// byEngine drives an epoch.Engine with ids.
type byEngine struct {
	events    []record.Event
	s         *Stream
	e         *epoch.Engine
	relations []uint32 // by number in the workload
	tuples    []uint64 // two ids an edge
}

// idsOf is the ids of the edges of a stream, two each, given that vertex v has
// the id v+1.
func idsOf(s *Stream) []uint64 {
	ids := make([]uint64, 0, 2*len(s.Edges))
	for _, e := range s.Edges {
		ids = append(ids, uint64(e.Src)+1, uint64(e.Dst)+1)
	}
	return ids
}

// startEngine makes an engine with the query of the stream.
func startEngine(s *Stream) (program, error) {
	b, err := newEngine(s)
	if err != nil {
		return nil, err
	}
	return b, b.epoch(record.Register, 0, b.register)
}

// newEngine makes an engine with the relations of the stream. It interns the vertices
// by number, so that ids are as dense as the vertices of the program by hand.
func newEngine(s *Stream) (*byEngine, error) {
	b := &byEngine{s: s, e: epoch.New(), tuples: s.ids}
	vertices := s.Vertices()
	for v := 0; v < vertices; v += loadEpoch {
		err := b.epoch(record.Batch, 0, func() error { return b.intern(v, min(v+loadEpoch, vertices)) })
		if err != nil {
			return nil, err
		}
	}
	return b, b.epoch(record.Batch, 0, b.relate)
}

func (b *byEngine) intern(from, to int) error {
	for v := from; v < to; v++ {
		id, err := b.e.Intern(term.Int(int64(v)))
		if err != nil {
			return err
		}
		if id != uint64(v)+1 {
			return fmt.Errorf("vertex %d has the id %d", v, id)
		}
	}
	return nil
}

// relate makes the relations.
func (b *byEngine) relate() error {
	for _, name := range b.s.Relations {
		n, err := b.e.Relation(name, 2)
		if err != nil {
			return err
		}
		b.relations = append(b.relations, n)
	}
	return nil
}

func (b *byEngine) register() error {
	p, err := catalog.Compile(b.s.Query, catalog.Options{})
	if err != nil {
		return err
	}
	return b.e.Register(context.Background(), &catalog.Query{Name: b.s.Name, Text: b.s.Query, Plan: p})
}

// event adds the change of edge i to the epoch.
func (b *byEngine) event(op uint8, i int, time int64) {
	b.events = append(b.events, record.Event{
		Op: op, Relation: b.relations[b.s.Edges[i].Rel], Tuple: b.tuples[2*i : 2*i+2], Time: time,
	})
}

// apply applies the events that were added.
func (b *byEngine) apply() error {
	evs := b.events
	b.events = b.events[:0]
	return b.e.Events(evs, func(_ int, err error) error { return err })
}

// epoch runs do as one epoch and waits for its publication.
func (b *byEngine) epoch(kind record.Kind, time int64, do func() error) error {
	if err := b.e.Begin(context.Background()); err != nil {
		return err
	}
	if err := do(); err != nil {
		b.e.Rollback()
		return err
	}
	t, err := b.e.Commit(context.Background(), kind, time)
	if err != nil {
		return err
	}
	return t.Wait(context.Background())
}

func (b *byEngine) load() error {
	for i := 0; i < b.s.Window; i += loadEpoch {
		err := b.epoch(record.Batch, int64(i), func() error {
			for j := i; j < min(i+loadEpoch, b.s.Window); j++ {
				b.event(epoch.OpInsert, j, int64(j))
			}
			return b.apply()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *byEngine) slide(from, to int) error {
	return b.epoch(record.Batch, int64(b.s.Window+from), func() error {
		for i := from; i < to; i++ {
			now := int64(b.s.Window + i)
			b.event(epoch.OpInsert, b.s.Window+i, now)
			b.event(epoch.OpDelete, i, now)
		}
		return b.apply()
	})
}

func (b *byEngine) answers() (int64, error) {
	if !b.s.counts {
		return countOf(b.e, b.s.Name)
	}
	bound, head, end := b.pinned()
	defer end()
	var out sink
	for a := bound.Answers(); a.Next(); {
		n, err := a.Multiplicity()
		if err != nil {
			return 0, err
		}
		x := uint64(1)
		if len(head) > 0 {
			x = a.Value(head[0])
		}
		out.takeGroup(uint32(x-1), n)
	}
	return int64(out.n), nil
}

func (b *byEngine) stats() (Internals, error) {
	st := b.e.Stats()
	return Internals{
		Writes: st.Writes, Woken: st.Woken, TrieLive: st.Tries.Live, TrieTotal: st.Tries.Total,
		Dictionary: st.DictBytes, Facts: st.FactBytes,
	}, nil
}

func (b *byEngine) close() error { return nil }

// byAPI drives a triegs.DB with terms.
type byAPI struct {
	s      *Stream
	db     *triegs.DB
	events []triegs.Event // of the epoch under construction
	terms  []triegs.Term  // of the events, two each
	last   triegs.Epoch   // that was appended
}

func startAPI(s *Stream) (program, error) {
	db, err := triegs.Open("", nil)
	if err != nil {
		return nil, err
	}
	b := &byAPI{s: s, db: db}
	if _, err := db.Register(context.Background(), s.Name, s.Query); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *byAPI) begin(n int) {
	if cap(b.events) < n {
		b.events, b.terms = make([]triegs.Event, 0, n), make([]triegs.Term, 0, 2*n)
	}
	b.events, b.terms = b.events[:0], b.terms[:0]
}

func (b *byAPI) event(op triegs.Op, i int) {
	e := b.s.Edges[i]
	n := len(b.terms)
	b.terms = append(b.terms, triegs.Int(int64(e.Src)), triegs.Int(int64(e.Dst)))
	b.events = append(b.events, triegs.Event{Op: op, Relation: b.s.Relations[e.Rel], Tuple: b.terms[n : n+2]})
}

func (b *byAPI) append() (err error) {
	b.last, err = b.db.Append(context.Background(), triegs.Batch{Events: b.events})
	return err
}

func (b *byAPI) load() error {
	for i := 0; i < b.s.Window; i += loadEpoch {
		b.begin(loadEpoch)
		for j := i; j < min(i+loadEpoch, b.s.Window); j++ {
			b.event(triegs.Insert, j)
		}
		if err := b.append(); err != nil {
			return err
		}
	}
	return nil
}

func (b *byAPI) slide(from, to int) error {
	b.begin(2 * (to - from))
	for i := from; i < to; i++ {
		b.event(triegs.Insert, b.s.Window+i)
		b.event(triegs.Delete, i)
	}
	return b.append()
}

func (b *byAPI) answers() (int64, error) {
	snap, err := b.db.Snapshot()
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	if !b.s.counts {
		n, _, err := snap.Count(context.Background(), b.s.Name)
		return n, err
	}
	var out sink
	for row, err := range snap.Answers(b.s.Name) {
		if err != nil {
			return 0, err
		}
		x := int64(0)
		if b.s.Columns > 0 {
			x, _ = row.Term(0).AsInt()
		}
		out.takeGroup(uint32(x), row.Value(0).(int64))
	}
	return int64(out.n), nil
}

func (b *byAPI) stats() (Internals, error) {
	m := b.db.Metrics()
	return Internals{
		Writes: m.ViewWrites, Woken: m.Woken, TrieLive: m.LiveBytes,
		TrieTotal:  m.LiveBytes + m.PendingBytes + m.RetainedBytes + m.ReusableBytes,
		Dictionary: m.DictionaryBytes, Facts: m.FactBytes,
	}, nil
}

func (b *byAPI) close() error { return b.db.Close() }
