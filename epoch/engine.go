package epoch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/dict"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/invariant"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/mvcc"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/trie"
	"github.com/triegs/triegs/views"
	"github.com/triegs/triegs/window"
)

// Log takes the records of epochs. epoch/wal implements it on disk.
type Log interface {
	// Enqueue appends a record and calls done, in the order of the calls, when
	// it is as durable as the mode promises. The payload is copied.
	Enqueue(payload []byte, done func(err error)) error
}

// Schema is the catalog of an epoch with what the views know of it. It is
// immutable and stands in the root vector.
type Schema struct {
	*catalog.Catalog
	Views  map[string]*views.Query
	Shapes []Shape // by relation
}

// Engine is the writer of a store with its state. One goroutine at a time is
// between Begin and the end of the epoch; readers use Current.
type Engine struct {
	// Current is the published state.
	Current rootvec.Current

	algebras algebras

	lock    chan struct{} // holds one token from Begin to Commit or Rollback
	dict    *dict.Dict
	facts   *window.Store
	views   *views.Store
	schema  *Schema
	layouts []layout           // by relation
	tags    []rootvec.Relation // by relation, for digests
	sources rootvec.Sources
	digest  rootvec.Digest
	parts   []rootvec.Digest // digest by relation: their sum is digest
	moved   []movedPart      // what the epoch under construction changed of parts
	made    []int            // relations of the views that it brought
	// obsolete are those that it replaced.
	obsolete []int
	stepped  bool   // time has moved in it, and its facts are in the views
	last     uint64 // the last applied epoch
	time     int64
	log      Log // nil: in memory, or replaying

	rec     record.Record // the epoch under construction
	words   []uint64      // memory of the tuples of rec
	valued  []uint64      // a fact with its value, for admit
	buf     []byte        // memory of its encoding
	applied uint64        // events of the epoch under construction
	gone    uint64        // columns of the facts that it retracted
	outcome Outcome       // of time in it
	// timed says that logical time is that of events, lateness how far behind it
	// they may come, in nanoseconds.
	timed    bool
	lateness int64
	left     struct{ ignored, skipped uint64 } // events left out of it
	marks    marks                             // where to go back to
	pins     []mvcc.Version
	hasher   rootvec.Hasher
	keeps    bool            // digests are kept up
	hashes   []uint64        // of the terms of the changes of one relation
	warm     uint64          // keeps the loads of Warm alive
	expect   *rootvec.Digest // of the record that is being replayed

	failed  atomic.Pointer[error] // why nothing is applied any more
	due     atomic.Int64          // see Due
	clocked atomic.Bool           // see Clocked
	// fewFacts is how many facts a query may read and still be filled while writers
	// wait; brake is how long writers wait for their epochs beside that, so that
	// hydrations catch up.
	fewFacts int
	brake    atomic.Int64
	waiting  struct {
		sync.Mutex
		next chan struct{} // closed at the next publication
	}

	terms termUpkeep

	counters
}

// movedPart is the digest of a relation before the epoch under construction.
type movedPart struct {
	relation uint32
	before   rootvec.Digest
}

type marks struct {
	terms     uint64
	relations int
	schema    *Schema
	layouts   []layout
	sources   rootvec.Sources
	faults    uint64 // of the dictionary
}

// counters are read while epochs go on.
type counters struct {
	events, refused, ignored, skipped, expired atomic.Uint64
}

// Outcome tells what the passing of time has done in an epoch.
type Outcome struct {
	Expired uint64 // contributions that nothing sees any more
	// Conflicts are insertions that have waited for their time, and whose ID was
	// that of another fact then.
	Conflicts uint64
}

// New makes an engine with an empty state, published as epoch 0. It logs
// nothing until Logged is called.
func New() *Engine {
	e := &Engine{
		dict:     dict.New(),
		facts:    window.NewStore(),
		views:    views.NewStore(1),
		schema:   &Schema{Catalog: catalog.Empty, Shapes: []Shape{}},
		time:     minTime,
		fewFacts: leastFacts(),
		lock:     make(chan struct{}, 1),
	}
	e.facts.OnReturn(e.dict.Mark)
	e.due.Store(math.MaxInt64)
	v := e.Current.Fresh()
	*v = rootvec.Vector{Time: minTime, Catalog: e.schema}
	e.Current.Publish(v)
	return e
}

// minTime is before every event: the logical time of the empty store.
const minTime = -1 << 63

// Logged makes the engine log every epoch from now on.
func (e *Engine) Logged(l Log) { e.log, e.keeps = l, true }

// Budget bounds the bytes of the tries from now on, 0 means no bound. An epoch
// above it is refused.
func (e *Engine) Budget(bytes int64) { e.views.Budget(bytes) }

// Dict is the dictionary. Only the holder of the epoch may intern.
func (e *Engine) Dict() *dict.Dict { return e.dict }

// Last is the last applied epoch. The epoch must be held.
func (e *Engine) Last() uint64 { return e.last }

// Time is the logical time of the last applied epoch. The epoch must be held.
func (e *Engine) Time() int64 { return e.time }

// Source is the position of a source after the last applied epoch and what the
// epoch under construction has changed. The epoch must be held.
func (e *Engine) Source(name string) (rootvec.Source, bool) {
	return e.sources.Get(name)
}

// Schema is that of the epoch under construction, which must be held.
func (e *Engine) Schema() *Schema { return e.schema }

// Err is why nothing is applied any more, nil while all is well.
func (e *Engine) Err() error {
	if p := e.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// Fail ends the writing: every later Begin returns err. The first call counts.
func (e *Engine) Fail(err error) {
	if e.failed.CompareAndSwap(nil, &err) {
		e.wake()
	}
}

// hold waits for other writers, or until ctx ends. A channel can do both where
// a mutex cannot.
func (e *Engine) hold(ctx context.Context) error {
	select {
	case e.lock <- struct{}{}:
		return nil // nobody to wait for, so nothing for ctx to end
	default:
	}
	select {
	case e.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		if err := ctx.Err(); err != nil {
			return err
		}
		return context.Canceled
	}
}

func (e *Engine) free() { <-e.lock }

// Begin starts an epoch, after those of other writers; ctx ends the wait. On
// success the caller holds it until Commit, Rollback or Leave.
func (e *Engine) Begin(ctx context.Context) error {
	e.braked(ctx)
	return e.begin(ctx)
}

// begin is Begin of a writer that hydrations do not wait for.
func (e *Engine) begin(ctx context.Context) error {
	if err := e.hold(ctx); err != nil {
		return err
	}
	if err := e.Err(); err != nil {
		e.free()
		return err
	}
	e.marks = marks{e.dict.Len(), len(e.schema.Relations()), e.schema, e.layouts, e.sources, e.dict.Faults()}
	rec := &e.rec
	clear(rec.Terms) // kept memory must not keep texts
	clear(rec.Events)
	*rec = record.Record{
		Terms:     keep(rec.Terms),
		Relations: keep(rec.Relations),
		Events:    keep(rec.Events),
		Sources:   keep(rec.Sources),
	}
	e.words, e.applied, e.gone = keep(e.words), 0, 0
	e.stepped, e.outcome = false, Outcome{}
	e.left.ignored, e.left.skipped = 0, 0
	e.facts.Begin()
	return nil
}

// keep empties a slice for the next epoch, and lets go of one that a bulk epoch
// has blown up.
func keep[T any](s []T) []T {
	if cap(s) > 1<<17 {
		return nil
	}
	return s[:0]
}

// Rollback drops the epoch under construction and everything it brought.
func (e *Engine) Rollback() {
	e.rollback()
	e.refused.Add(1)
	e.free()
}

// Leave ends an epoch that turned out to bring nothing, without a trace.
func (e *Engine) Leave() {
	e.rollback()
	e.countLeft()
	e.free()
}

// countLeft counts the events that an epoch which was not refused left out.
func (e *Engine) countLeft() {
	e.ignored.Add(e.left.ignored)
	e.skipped.Add(e.left.skipped)
}

func (e *Engine) rollback() {
	e.facts.Rollback()
	e.views.Abort()
	for _, m := range e.moved {
		e.parts[m.relation] = m.before
	}
	e.moved = e.moved[:0]
	for _, n := range e.made {
		e.views.RemoveRelation(n)
	}
	e.made, e.obsolete = e.made[:0], e.obsolete[:0]
	if n := e.marks.relations; n < len(e.schema.Relations()) {
		e.facts.RemoveRelations(uint32(n))
		e.tags, e.parts = e.tags[:n], e.parts[:n]
	}
	e.schema, e.layouts, e.sources = e.marks.schema, e.marks.layouts, e.marks.sources
	e.dict.Truncate(e.marks.terms)
}

// Intern returns the id of a term, which travels in the record if it is new.
func (e *Engine) Intern(t term.Term) (uint64, error) {
	id := e.dict.Intern(t)
	if id == 0 {
		return 0, fmt.Errorf("interning a term: %w", e.cause(dict.Check(t)))
	}
	return id, nil
}

// cause is err, or if the term itself is fine that another one could not be
// compared with it, or that the dictionary is full.
func (e *Engine) cause(err error) error {
	if err == nil {
		err = e.dict.Since(e.marks.faults)
	}
	if err == nil {
		err = fmt.Errorf("%w: the dictionary is full", errs.ErrBudget)
	}
	return err
}

// Find returns the id of a term as Find of the dictionary does; an error tells
// that a text could not be read, so that the term may be there. The epoch must
// be held.
func (e *Engine) Find(t term.Term) (id uint64, ok bool, err error) {
	faults := e.dict.Faults()
	if id, ok = e.dict.Find(t, e.dict.Len()); !ok {
		err = e.dict.Since(faults)
	}
	return id, ok, err
}

// Relation returns the number of a relation, making it if it is new. Another
// arity than that of its first use is ErrArity.
func (e *Engine) Relation(name string, arity int) (uint32, error) {
	if i, r, ok := e.schema.Relation(name); ok {
		if r.Arity != arity {
			return 0, fmt.Errorf("%w: relation %s has %d columns, not %d", errs.ErrArity, name, r.Arity, arity)
		}
		return uint32(i), nil
	}
	r := catalog.Relation{Name: name, Arity: arity}
	if err := r.Check(); err != nil {
		return 0, err
	}
	e.addRelation(r)
	return uint32(len(e.schema.Relations()) - 1), nil
}

// growRelation makes room for the next relation in all that is kept by number.
func (e *Engine) growRelation(r catalog.Relation) {
	rel := e.facts.AddRelation(r.Arity)
	base := e.views.AddRelation(r.Arity)
	e.made = append(e.made, base)
	l := layout{base: base, cover: -1, keep: window.Forever, allValued: noStream}
	if r.Keep > 0 {
		l.keep = r.Keep
		e.facts.SetWindows(rel, e.now(), nil, r.Keep)
	}
	e.layouts = append(slices.Clip(e.layouts), l)
	e.tags = append(e.tags, rootvec.NewRelation(r.Name, r.Arity))
	e.parts = append(e.parts, rootvec.Digest{})
}

func (e *Engine) addRelation(r catalog.Relation) {
	e.growRelation(r)
	e.rec.Relations = append(e.rec.Relations, record.Relation{Name: r.Name, Arity: r.Arity})
	if e.schema.Catalog == e.marks.schema.Catalog { // readers have it
		e.setCatalog(e.schema.Catalog.Clone(), e.schema.Views)
	}
	e.schema.Catalog.AddRelation(r)
}

// setCatalog replaces the schema. The shapes are filled in by Commit.
func (e *Engine) setCatalog(c *catalog.Catalog, q map[string]*views.Query) {
	e.schema = &Schema{Catalog: c, Views: q}
}

// Words returns room for n ids that stays valid until the end of the epoch.
func (e *Engine) Words(n int) []uint64 {
	if len(e.words)+n > cap(e.words) {
		e.words = make([]uint64, 0, max(1024, 2*cap(e.words), n))
	}
	at := len(e.words)
	e.words = e.words[:at+n]
	return e.words[at : at+n : at+n]
}

// Operations of an event, as they stand in the log.
const (
	OpInsert = iota
	OpDelete
	// The same of an event that waits until logical time reaches it.
	OpWaitInsert
	OpWaitDelete
)

// Events applies events in order to the live contributions and adds them to the
// record. When one fails, fail is asked: nil leaves that event out and goes on,
// an error ends the call and is returned.
func (e *Engine) Events(evs []record.Event, fail func(i int, err error) error) error {
	for at := 0; at < len(evs); at += warmBatch {
		batch := evs[at:min(at+warmBatch, len(evs))]
		if len(batch) > 2 {
			for i := range batch {
				if batch[i].ID == "" {
					e.warm += e.facts.Warm(batch[i].Relation, batch[i].Tuple)
				}
			}
		}
		for i := range batch {
			if err := e.Event(&batch[i]); err != nil {
				if err := fail(at+i, err); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// warmBatch is how many events have their records fetched side by side before
// they are applied.
const warmBatch = 16

// Event applies one event to the live contributions and adds it to the record.
// An error leaves the event out; the epoch may go on or be rolled back.
func (e *Engine) Event(ev *record.Event) error {
	var err error
	switch {
	case ev.Op >= OpWaitInsert:
		e.facts.Wait(window.Waiting{
			Delete: ev.Op == OpWaitDelete, Rel: ev.Relation, Tuple: ev.Tuple, Time: ev.Time, Value: ev.Value, ID: ev.ID,
		})
	case ev.Op == OpInsert:
		err = e.facts.Insert(ev.Relation, ev.Tuple, ev.Time, ev.Value, ev.ID)
	case ev.ID != "":
		err = e.facts.DeleteID(ev.ID, ev.Relation, ev.Tuple)
	default:
		err = e.facts.Delete(ev.Relation, ev.Tuple, ev.Value)
	}
	if err == nil {
		e.applied++
		if ev.Op == OpDelete {
			e.gone += uint64(max(len(ev.Tuple), 2))
		}
		if e.log != nil {
			e.rec.Events = append(e.rec.Events, *ev)
		}
	}
	return err
}

// DeleteAll retracts all live contributions to the facts of a relation that agree
// with a pattern, in which 0 agrees with every term. Cost: that of the
// contributions; the first pattern over these columns has an index made.
func (e *Engine) DeleteAll(rel uint32, pattern []uint64, time int64) error {
	var found []uint64
	take := func(tuple []uint64) { found = append(found, tuple...) }
	l := &e.layouts[rel]
	made := e.views.Match(l.base, pattern, take)
	if l.cover >= 0 {
		made = e.views.Match(l.streams[l.cover], pattern, take) || made
	}
	if made { // readers are told of the index
		e.setCatalog(e.schema.Catalog, e.schema.Views)
	}
	// What the epoch has changed so far is not in the views yet.
	for c := e.facts.Changes(rel); c.Next(); {
		if agrees(c.Tuple(), pattern) {
			take(c.Tuple())
		}
	}
	for k := len(pattern); len(found) > 0; found = found[k:] {
		ev := record.Event{Op: OpDelete, Relation: rel, Tuple: found[:k:k], Time: time}
		for n := e.facts.Count(rel, ev.Tuple); n > 0; n-- {
			if err := e.Event(&ev); err != nil {
				return err
			}
		}
	}
	return nil
}

func agrees(tuple, pattern []uint64) bool {
	for i, id := range pattern {
		if id != 0 && tuple[i] != id {
			return false
		}
	}
	return true
}

// Ignore counts an event that was left out because it had nothing to retract.
func (e *Engine) Ignore() { e.left.ignored++ }

// Ignored is how many events of the epoch under construction were left out so.
func (e *Engine) Ignored() uint64 { return e.left.ignored }

// Skip counts events that a source sent again.
func (e *Engine) Skip(n uint64) { e.left.skipped += n }

// Move sets the position of a source in the epoch under construction.
func (e *Engine) Move(name string, s rootvec.Source) {
	e.sources = e.sources.With(name, s)
	to := record.Source{
		Name: name, Incarnation: s.Incarnation, Next: s.Next, Skipped: s.Skipped,
		Watermark: s.Watermark, HasWatermark: s.HasWatermark, Explicit: s.Explicit,
	}
	if n := len(e.rec.Sources); n > 0 && e.rec.Sources[n-1].Name == name {
		e.rec.Sources[n-1] = to // its offset and its watermark, one after the other
		return
	}
	e.rec.Sources = append(e.rec.Sources, to)
}

// Ticket is an epoch on its way to publication.
type Ticket struct {
	Epoch uint64
	done  chan error
}

// Wait returns when the epoch is published, or with the error that keeps it
// from being so. When ctx ends first, the error says that the epoch stands.
func (t Ticket) Wait(ctx context.Context) error {
	if t.done == nil {
		return nil
	}
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-t.done:
		return err
	default:
		return fmt.Errorf("epoch %d is applied and logged, waiting for its sync ended early: %w", t.Epoch, ctx.Err())
	}
}

// Commit ends the epoch under construction: it goes through the views, into the
// log, and is published when it is durable. On error (ErrOverflow, ErrBudget,
// ctx's, ErrReadOnly) the epoch is rolled back. In all cases the epoch is no
// longer held.
func (e *Engine) Commit(ctx context.Context, kind record.Kind, time int64) (Ticket, error) {
	t, err := e.commit(ctx, kind, time)
	if err != nil {
		e.Rollback()
		return Ticket{}, err
	}
	e.free()
	return t, nil
}

// Pass moves logical time, which never goes back: contributions enter and leave
// windows, and what nothing sees any more expires; then all changes of the epoch
// under construction go through the views. Commit does it where it was not done.
// On error (ErrOverflow, ErrBudget) the caller must roll back.
func (e *Engine) Pass(time int64) error {
	e.stepped = true
	e.rec.Time = max(time, e.time)
	e.rec.EventTime, e.rec.Lateness = e.timed, e.lateness
	released := e.release()
	expired, columns := e.facts.Advance(e.rec.Time)
	e.outcome = Outcome{expired, released.Conflicts}
	e.gone += columns + released.Columns + e.facts.Replaced()
	e.left.ignored += released.Missing
	if e.last >= maxEpoch {
		return fmt.Errorf("%w: epoch numbers end at %d", errs.ErrBudget, uint64(maxEpoch))
	}
	e.sweepTerms(e.collect())
	digest := e.change()
	if e.expect != nil && *e.expect != digest {
		return fmt.Errorf("%w: the content digest is %v, the log says %v", errs.ErrCorrupt, digest, *e.expect)
	}
	e.rec.Digest = digest
	if len(e.facts.Touched()) == 0 {
		return nil
	}
	if err := e.views.Apply(); err != nil {
		return e.refusal(err)
	}
	invariant.Yield()
	return nil
}

// refusal names the query whose views refuse the epoch under construction, and those
// of its relations that the epoch changes.
func (e *Engine) refusal(err error) error {
	var r *views.Refusal
	if !errors.As(err, &r) {
		return err
	}
	for name, q := range e.schema.Views {
		if q == r.Query {
			return fmt.Errorf("query %q cannot take the changes of %s: %w", name, strings.Join(r.Relations, ", "), err)
		}
	}
	return err
}

// release applies what has waited for its time. Where time is not that of events
// any more, that is what an earlier opening has left, and it is left alone until
// time moves: a query may come or go between two openings.
func (e *Engine) release() (r window.Released) {
	if e.timed || e.rec.Time > e.time && e.facts.WaitingLen()+e.facts.Held() > 0 {
		r = e.facts.Release(e.rec.Time, settled(e.rec.Time, e.lateness))
	}
	return r
}

// settled is the time before which no event may come any more.
func settled(now, lateness int64) int64 {
	if now < math.MinInt64+lateness {
		return math.MinInt64
	}
	return now - lateness
}

// now is the logical time of the epoch under construction, or of the last one
// before time has moved.
func (e *Engine) now() int64 {
	if e.stepped {
		return e.rec.Time
	}
	return e.time
}

// FollowClock says that the time of the batch under construction is that of a
// clock.
func (e *Engine) FollowClock() { e.rec.Clocked = true }

// Clocked reports whether the last batch had its time from a clock, which goes on
// while no events come. It may be called at any time.
func (e *Engine) Clocked() bool { return e.clocked.Load() }

// Outcome tells what Pass has done in the epoch under construction.
func (e *Engine) Outcome() Outcome { return e.outcome }

// SetTime says whether logical time is that of events, and how far behind it they
// may come, in nanoseconds, from the next epoch on.
func (e *Engine) SetTime(ofEvents bool, lateness int64) {
	e.lock <- struct{}{}
	defer e.free()
	e.timed, e.lateness = ofEvents, lateness
}

// Outside reports whether no window and no retention of a relation could hold a
// contribution with this event time, as of the last applied epoch. The epoch must
// be held.
func (e *Engine) Outside(relation string, at int64) bool {
	n, _, ok := e.schema.Relation(relation)
	return ok && e.layouts[n].outside(at, e.time)
}

// Sources are the positions after the last applied epoch and what the epoch under
// construction has changed. The epoch must be held.
func (e *Engine) Sources() rootvec.Sources { return e.sources }

func (e *Engine) commit(ctx context.Context, kind record.Kind, time int64) (Ticket, error) {
	if !e.stepped {
		if err := e.Pass(time); err != nil {
			return Ticket{}, err
		}
	}
	e.complete(kind)
	// A query that comes or goes has looked at the context itself: its tries
	// are not put back after this point.
	if kind != record.Register && kind != record.Drop {
		if err := ctx.Err(); err != nil {
			return Ticket{}, err
		}
		// A filter may have had to do without the text of a term.
		if err := e.dict.Since(e.marks.faults); err != nil {
			return Ticket{}, err
		}
	}
	e.discard()
	return e.finish(kind)
}

// maxEpoch is what the headers of trie blocks can hold.
const maxEpoch = trie.MaxVersion - 1

// complete fills in what the record says of itself.
func (e *Engine) complete(kind record.Kind) {
	e.rec.Kind = kind
	e.rec.Epoch = e.last + 1
	if kind != record.Batch {
		e.rec.Clocked = e.clocked.Load()
	}
	if first := e.marks.terms + 1; e.log != nil && first <= e.dict.Len() {
		e.rec.FirstTerm = first
		for id := first; id <= e.dict.Len(); id++ {
			e.rec.Terms = append(e.rec.Terms, e.dict.Term(id))
		}
	}
	if len(e.rec.Relations) > 0 {
		e.rec.FirstRelation = uint32(e.marks.relations)
	}
	if e.schema != e.marks.schema { // else it is published and stays as it is
		e.schema.Shapes = e.shapes()
	}
}

// change hands the net changes of facts to the views and returns the digest
// that follows from them, if digests are kept up.
func (e *Engine) change() rootvec.Digest {
	digest := e.digest
	for _, rel := range e.facts.Touched() {
		e.changeRelation(rel)
		if e.digests() {
			part := &e.parts[rel]
			e.moved = append(e.moved, movedPart{rel, *part})
			digest = digest.Minus(*part)
			e.digestChanges(rel, part)
			digest = digest.Plus(*part)
		}
	}
	e.hashes = keep(e.hashes)
	return digest
}

// digests reports whether the content digest is kept up epoch by epoch. Only a
// log compares it, so a store in memory computes it when it is asked for.
func (e *Engine) digests() bool { return e.keeps }

// digestChanges moves the digest by the net changes of one relation.
//
// The hashes of all terms are fetched before any is used: they are scattered
// over the dictionary, and a loop that does nothing else has many loads under
// way at once.
func (e *Engine) digestChanges(rel uint32, digest *rootvec.Digest) {
	if e.facts.Len(rel) == 0 {
		*digest = rootvec.Digest{}
		return
	}
	e.hashes = e.hashes[:0]
	for c := e.facts.Changes(rel); c.Next(); {
		for _, id := range c.Tuple() {
			a, b := e.dict.Hash(id)
			e.hashes = append(e.hashes, a, b)
		}
	}
	at := 0
	for c := e.facts.Changes(rel); c.Next(); {
		n := len(c.Tuple())
		e.hasher.Fact(e.tags[rel], n)
		for i := range n {
			e.hasher.Column(i, e.hashes[at], e.hashes[at+1])
			at += 2
		}
		e.hasher.Move(digest, c.Old(), c.New())
	}
}

// finish logs the epoch and makes it the last applied one.
func (e *Engine) finish(kind record.Kind) (Ticket, error) {
	digest := rootvec.Digest(e.rec.Digest)
	v := e.Current.Fresh()
	*v = rootvec.Vector{
		Epoch: e.rec.Epoch, Time: e.rec.Time, Roots: v.Roots, Terms: e.dict.Len(),
		Sources: e.sources, Catalog: e.schema, Digest: digest,
	}
	v.Roots, v.Space = e.views.Copy(v.Roots)
	t := Ticket{Epoch: v.Epoch}
	if e.log != nil {
		t.done = make(chan error, 1)
		e.buf = e.rec.Append(e.buf[:0])
		if err := e.log.Enqueue(e.buf, func(err error) { t.done <- e.settle(v, err) }); err != nil {
			e.Current.Discard(v)
			if errors.Is(err, errs.ErrReadOnly) || kind == record.Register || kind == record.Drop {
				// The tries of a query that comes or goes are not put back, so
				// nothing may be built on them; readers are not concerned.
				e.Fail(err)
			}
			return Ticket{}, err
		}
		if cap(e.buf) > 4<<20 {
			e.buf = nil
		}
	}
	e.facts.Commit()
	e.views.Seal()
	e.moved, e.made = e.moved[:0], e.made[:0]
	e.due.Store(e.nextDue())
	e.clocked.Store(e.rec.Clocked)
	e.expired.Add(e.outcome.Expired)
	e.last, e.time, e.digest = v.Epoch, v.Time, digest
	e.events.Add(e.applied)
	e.countLeft()
	if e.gone > 0 {
		e.terms.gone += e.gone
		e.terms.due.Store(e.termsDue())
	}
	if e.log == nil {
		e.publish(v)
	}
	return t, nil
}

// settle publishes an epoch that the log has taken, or ends the writing if it
// has not.
func (e *Engine) settle(v *rootvec.Vector, err error) error {
	if err != nil {
		e.Fail(err)
		return err
	}
	e.publish(v)
	return nil
}

func (e *Engine) publish(v *rootvec.Vector) {
	invariant.Yield()
	e.Current.Publish(v)
	invariant.Yield()
	e.wake()
}

// wake lets everybody look who waits for a publication.
func (e *Engine) wake() {
	e.waiting.Lock()
	defer e.waiting.Unlock()
	if e.waiting.next != nil {
		close(e.waiting.next)
		e.waiting.next = nil
	}
}

// Published is closed at the next publication, and when the writing ends. Whoever
// has it and looks after that at what is published misses nothing.
func (e *Engine) Published() <-chan struct{} {
	e.waiting.Lock()
	defer e.waiting.Unlock()
	if e.waiting.next == nil {
		e.waiting.next = make(chan struct{})
	}
	return e.waiting.next
}

// WaitFor returns when the epoch is published, or with ctx's error, or with the
// error that has ended the writing.
func (e *Engine) WaitFor(ctx context.Context, epoch uint64) error {
	for {
		next := e.Published()
		// The channel was there before this look, so no publication is missed.
		if e.Current.Epoch() >= epoch {
			return nil
		}
		if err := e.Err(); err != nil {
			return err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// collect gives back the blocks that no reader can reach, and returns the oldest
// epoch that one can.
func (e *Engine) collect() (oldest uint64) {
	published, pins := e.Current.Pinned(e.pins[:0])
	e.pins = pins
	e.views.Collect(published, pins)
	if len(pins) > 0 {
		return pins[0]
	}
	return published
}

// TryCollect gives back what released pins have kept, unless a writer is busy,
// which will do it in its next epoch.
func (e *Engine) TryCollect() {
	select {
	case e.lock <- struct{}{}:
		e.sweepTerms(e.collect())
		e.free()
	default:
	}
}
