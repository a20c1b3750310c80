package triegs

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/views"
)

// Snapshot is one published epoch, kept as it is for as long as the snapshot is
// open: everything read through it, of any query, from any goroutine, is the
// state of that epoch. It keeps the memory that the epoch needs, so it must be
// closed.
type Snapshot struct {
	db   *DB
	born time.Time
	// vector may be used between enter and leave only: after the last use it is
	// filled anew for a later epoch. What can be asked of a closed snapshot is
	// copied.
	vector  *rootvec.Vector
	epoch   Epoch
	time    int64
	sources rootvec.Sources

	// over is why the snapshot has ended, nil while it is open. Enumerations
	// look at it at every step, without the lock.
	over atomic.Pointer[error]
	mu   struct {
		sync.Mutex
		users    int  // enumerations and calls that run
		released bool // the pin was given back
	}
}

// Snapshot pins the current epoch. Errors: ErrClosed. Cost is constant.
func (db *DB) Snapshot() (*Snapshot, error) {
	db.snapshots.Lock()
	defer db.snapshots.Unlock()
	// Close sets closed before it takes the list, so what passes here is in it.
	if db.closed.Load() {
		return nil, edge(ErrClosed)
	}
	v := db.engine.Current.Pin()
	s := &Snapshot{db: db, born: db.opts.Clock(), vector: v, epoch: Epoch(v.Epoch), time: v.Time, sources: v.Sources}
	db.snapshots.open[s] = struct{}{}
	return s, nil
}

// Epoch is the epoch that the snapshot shows.
func (s *Snapshot) Epoch() Epoch { return s.epoch }

// Time is the logical time of the epoch; the zero time before the first one.
func (s *Snapshot) Time() time.Time {
	return wallTime(s.time)
}

// wallTime is a logical time as the API tells it.
func wallTime(ns int64) time.Time {
	if ns == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// Offsets are the next offsets of all sources after the epoch.
func (s *Snapshot) Offsets() map[string]uint64 {
	out := make(map[string]uint64)
	for name, p := range s.sources.All() {
		if name != "" { // batches without a source have a watermark alone
			out[name] = p.Next
		}
	}
	return out
}

// Digest is a digest of the content of all relations: equal content has equal
// digest, whatever the history that led to it. See the package rootvec for what
// it can and cannot tell. A store on disk keeps it up epoch by epoch; a store in
// memory computes it here, at a cost linear in the facts.
func (s *Snapshot) Digest() (Digest, error) {
	if err := s.enter(); err != nil {
		return Digest{}, edge(err)
	}
	defer s.leave()
	d, err := s.db.engine.Digest(context.Background(), s.vector)
	return d, edge(err)
}

// Digest is a 128-bit digest of the content of all relations of an epoch.
type Digest = rootvec.Digest

// Close gives the epoch back. Enumerations that still run end with
// ErrSnapshotClosed at their next step. A second Close does nothing.
func (s *Snapshot) Close() error {
	s.end(ErrSnapshotClosed)
	return nil
}

// end closes the snapshot for the given reason and reports whether it was open.
func (s *Snapshot) end(reason error) bool {
	if !s.over.CompareAndSwap(nil, &reason) {
		return false
	}
	s.db.snapshots.Lock()
	delete(s.db.snapshots.open, s)
	s.db.snapshots.Unlock()
	s.mu.Lock()
	idle := s.mu.users == 0
	s.mu.Unlock()
	if idle {
		s.release()
	}
	return true
}

// release gives the pin back, once.
func (s *Snapshot) release() {
	s.mu.Lock()
	first := !s.mu.released
	s.mu.released = true
	s.mu.Unlock()
	if first && s.db.engine.Current.Unpin(s.vector) {
		s.db.engine.TryCollect()
	}
}

// enter starts a use of the pinned state, which ends with leave.
func (s *Snapshot) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ended(); err != nil {
		return err
	}
	s.mu.users++
	return nil
}

func (s *Snapshot) leave() {
	s.mu.Lock()
	s.mu.users--
	last := s.mu.users == 0 && s.over.Load() != nil
	s.mu.Unlock()
	if last {
		s.release()
	}
}

// ended is why the snapshot has ended, nil while it is open.
func (s *Snapshot) ended() error {
	if p := s.over.Load(); p != nil {
		return *p
	}
	return nil
}

// SnapshotInfo describes an open snapshot.
type SnapshotInfo struct {
	Epoch Epoch
	Age   time.Duration // by Options.Clock
	// RetainedBytes is memory that the epoch keeps and the current one does not
	// need. What several open epochs keep is told at the newest of them.
	RetainedBytes int64
}

// Snapshots lists the open snapshots, oldest epoch first, so that one that was
// forgotten can be found. It waits for an epoch that is being applied.
func (db *DB) Snapshots() []SnapshotInfo {
	now := db.opts.Clock()
	var list []SnapshotInfo
	db.snapshots.Lock()
	for s := range db.snapshots.open {
		list = append(list, SnapshotInfo{Epoch: s.epoch, Age: now.Sub(s.born)})
	}
	db.snapshots.Unlock()
	slices.SortFunc(list, func(a, b SnapshotInfo) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(b.Age, a.Age))
	})
	epochs := make([]uint64, len(list))
	for i := range list {
		epochs[i] = uint64(list[i].Epoch)
	}
	for i, held := range db.engine.Held(epochs) {
		list[i].RetainedBytes = held
	}
	return list
}

// endSnapshots closes all snapshots and returns how many were open.
func (db *DB) endSnapshots() int {
	db.snapshots.Lock()
	open := maps.Clone(db.snapshots.open)
	db.snapshots.Unlock()
	n := 0
	for s := range open {
		if s.end(ErrClosed) {
			n++
			db.notify(Notice{Kind: NoticeSnapshotLeaked, Epoch: s.Epoch()})
		}
	}
	return n
}

// expireSnapshots ends the snapshots that are older than Options.MaxPinAge.
func (db *DB) expireSnapshots() {
	if db.opts.MaxPinAge == 0 {
		return
	}
	now := db.opts.Clock()
	var old []*Snapshot
	db.snapshots.Lock()
	for s := range db.snapshots.open {
		if now.Sub(s.born) > db.opts.MaxPinAge {
			old = append(old, s)
		}
	}
	db.snapshots.Unlock()
	for _, s := range old {
		if s.end(fmt.Errorf("%w: it was open for more than %s", ErrSnapshotExpired, db.opts.MaxPinAge)) {
			db.notify(Notice{Kind: NoticeSnapshotExpired, Epoch: s.Epoch()})
		}
	}
}

func (s *Snapshot) schema() *epoch.Schema { return s.vector.Catalog.(*epoch.Schema) }

// bind finds a registered query of the epoch.
func (s *Snapshot) bind(name string) (*catalog.Query, *views.Bound, error) {
	q, err := s.schema().Query(name)
	if err != nil {
		return nil, nil, err
	}
	return q, s.schema().Views[name].Bind(s.vector.Space, s.vector.Roots), nil
}

// Answers enumerates the answers of a registered query, each exactly once. The
// work between two answers depends on the query alone. The row is reused by the
// next step: Clone keeps it. An error without a row ends the enumeration:
// ErrNoSuchQuery, ErrSnapshotClosed, ErrSnapshotExpired, ErrClosed. A row with
// ErrOverflow is an answer whose multiplicity does not fit in int64; the
// enumeration goes on behind it.
func (s *Snapshot) Answers(query string) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		if err := s.enter(); err != nil {
			yield(nil, edge(err))
			return
		}
		defer s.leave()
		q, b, err := s.bind(query)
		if err != nil {
			yield(nil, edge(err))
			return
		}
		s.enumerate(context.Background(), q.Plan.Query, b, yield)
	}
}

// enumerate yields the answers of b until there are no more, the consumer stops,
// or the snapshot or ctx ends.
func (s *Snapshot) enumerate(ctx context.Context, q *query.Query, b *views.Bound, yield func(*Row, error) bool) {
	row := s.newRow(q).remembering()
	done := ctx.Done()
	terms := s.db.engine.Dict()
	faults := terms.Faults()
	values := b.Values()
	valued := values.Outputs() > 0
	a := b.Answers()
	value := a.Value
	for {
		// The pin is held until leave, so this look only makes the
		// enumeration end soon, and a race with Close is harmless.
		if err := s.ended(); err != nil {
			yield(nil, edge(err))
			return
		}
		select {
		case <-done:
			yield(nil, edge(ctx.Err()))
			return
		default:
		}
		// What the consumer has seen of the row before may lack a text.
		if err := terms.Since(faults); err != nil {
			yield(nil, edge(err))
			return
		}
		if !a.Next() {
			return
		}
		for i, v := range q.Head {
			row.ids[i] = a.Value(v)
		}
		var err error
		switch row.multiplicity, err = a.Multiplicity(); {
		case err != nil:
			clear(row.values) // they are those of the row before
			err = edge(err)
		case valued:
			err = edge(row.read(values, value))
		}
		if !yield(row, err) {
			return
		}
	}
}

func (s *Snapshot) newRow(q *query.Query) *Row {
	return &Row{columns: columns(q), ids: make([]uint64, len(q.Head)), terms: s.db.engine.Dict()}
}

// columns names the columns of the rows of q.
func columns(q *query.Query) []string {
	if len(q.Aggregates) == 0 {
		return q.Columns
	}
	list := slices.Clone(q.Columns)
	for _, a := range q.Aggregates {
		list = append(list, a.Column)
	}
	return list
}

// read sets the values of an answer whose multiplicity is set. On an error there
// are none.
func (r *Row) read(from *views.Values, value func(query.Var) uint64) error {
	n := from.Outputs()
	if n == 0 {
		return nil
	}
	r.values = slices.Grow(r.values[:0], n)[:n]
	for i := range r.values {
		v, err := from.Read(i, value, r.multiplicity)
		if err != nil {
			clear(r.values)
			return err
		}
		r.values[i] = v
	}
	return nil
}

// Lookup finds one answer by its columns (those of the output variables, without
// the aggregates), in their order, with its annotation.
// Errors: ErrNoAnswer, ErrArity (not as many terms as columns), ErrValue (the
// zero Term), ErrOverflow,
// ErrNoSuchQuery and those of a snapshot that has ended. Cost: one probe for
// each node of the join tree.
func (s *Snapshot) Lookup(query string, tuple ...Term) (*Row, error) {
	if err := s.enter(); err != nil {
		return nil, edge(err)
	}
	defer s.leave()
	row, err := s.lookup(query, tuple)
	if err != nil {
		return nil, edge(err)
	}
	return row, nil
}

func (s *Snapshot) lookup(name string, tuple []Term) (*Row, error) {
	q, b, err := s.bind(name)
	if err != nil {
		return nil, err
	}
	head := q.Plan.Query.Head
	if len(tuple) != len(head) {
		return nil, fmt.Errorf("%w: query %s has %d columns, not %d", ErrArity, name, len(head), len(tuple))
	}
	row := s.newRow(q.Plan.Query)
	ids := make([]uint64, len(q.Plan.Query.Vars))
	for i, t := range tuple {
		if t.IsZero() {
			return nil, fmt.Errorf("%w: column %d is the absent term", ErrValue, i+1)
		}
		terms := s.db.engine.Dict()
		faults := terms.Faults()
		id, ok := terms.Find(t, s.vector.Terms)
		if err := terms.Since(faults); !ok && err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%w: of query %s", ErrNoAnswer, name)
		}
		row.ids[i], ids[head[i]] = id, id
	}
	value := func(v query.Var) uint64 { return ids[v] }
	row.multiplicity, err = b.Lookup(value)
	switch {
	case err != nil:
		return row, err
	case row.multiplicity == 0:
		return row, fmt.Errorf("%w: of query %s", ErrNoAnswer, name)
	}
	return row, row.read(b.Values(), value)
}

// Count returns the number of distinct answers of a registered query and the
// sum of their multiplicities, in one pass over the views: linear in them, never
// in the answers. For a query with aggregates or a semiring the sum is the number
// of answers. Errors: ErrOverflow, ctx's, ErrNoSuchQuery and those of a
// snapshot that has ended.
func (s *Snapshot) Count(ctx context.Context, query string) (distinct, total int64, err error) {
	if err := s.enter(); err != nil {
		return 0, 0, edge(err)
	}
	defer s.leave()
	_, b, err := s.bind(query)
	if err == nil {
		distinct, total, err = b.Count(ctx)
	}
	return distinct, total, edge(err)
}

// Select answers a query text on the pinned state without registering it, as
// Answers does for registered ones. It builds what the query needs beyond the
// indexes that the epoch has, in memory of its own: cost is linear in the
// relations of the query, up to sorting. Further errors: ErrSyntax, ErrArity,
// ErrUnsupported, and ctx's, at which the enumeration ends. A query with annotated
// atoms (atom@) is ErrUnsupported unless a registered one reads the values of the same
// relations: only then does the store keep them by fact.
func (s *Snapshot) Select(ctx context.Context, text string) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		if err := s.enter(); err != nil {
			yield(nil, edge(err))
			return
		}
		defer s.leave()
		p, b, err := s.evaluate(ctx, text)
		if err != nil {
			yield(nil, edge(err))
			return
		}
		s.enumerate(ctx, p.Query, b, yield)
	}
}

func (s *Snapshot) evaluate(ctx context.Context, text string) (*plan.Plan, *views.Bound, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	p, err := catalog.Compile(text, catalog.Options{})
	if err != nil {
		return nil, nil, err
	}
	for i := range p.Query.Atoms {
		if a := &p.Query.Atoms[i]; !a.Window.IsZero() {
			return nil, nil, fmt.Errorf("%d:%d: %w: a window wants a registered query", a.Pos.Line, a.Pos.Col, ErrUnsupported)
		}
	}
	b, err := s.db.engine.Evaluate(ctx, s.vector, p)
	return p, b, err
}
