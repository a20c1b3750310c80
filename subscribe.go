package triegs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/rootvec"
	"github.com/triegs/triegs/views"
)

// SubscribeMode says where a subscription begins.
type SubscribeMode uint8

const (
	// Follow tells what changes after the epoch that is current at Subscribe.
	Follow SubscribeMode = iota
	// SnapshotFirst begins with an update that holds the whole answer at that
	// epoch, as changes from nothing, and goes on from there.
	SnapshotFirst
	// FromToken tells what has changed since the epoch of SubscribeOptions.Token.
	FromToken
)

// SlowPolicy says what becomes of a subscription with PerEpoch when more than
// SubscribeOptions.Buffer epochs wait for it.
type SlowPolicy uint8

const (
	// SlowCoalesce makes one update of all that was missed: the net change up to
	// the newest epoch.
	SlowCoalesce SlowPolicy = iota
	// SlowEnd ends the subscription with ErrSlowSubscriber.
	SlowEnd
)

// defaultBuffer is how many epochs wait for a subscription that takes each: a
// second of a busy store, and no more than what differs between them is kept.
const defaultBuffer = 1024

// SubscribeOptions changes how a subscription goes; the zero value is the default of
// every field.
type SubscribeOptions struct {
	// Name is that of a consumer whose place the store keeps, also over a restart; see
	// Ack. A new name begins as Mode says, and its place is on stable storage before
	// Subscribe returns. A known one goes on behind what it has acknowledged, whatever
	// Mode and Token say; one that began with SnapshotFirst and has acknowledged nothing
	// begins with the whole answer again. PerEpoch, Quiet and Where are those of the
	// call: where PerEpoch was not asked for before, what has happened meanwhile is one
	// update. A name belongs to one query, by its registration; a new query of that name
	// is another one. Default "" = no name.
	Name string
	// Mode says where it begins. Default Follow.
	Mode SubscribeMode
	// Token is where it begins under FromToken, and ErrValue otherwise.
	Token Token
	// PerEpoch makes one update of every epoch. Default false: an update goes to the
	// newest epoch that there is when it is asked for, so that whoever is slow gets
	// fewer and larger ones, and nothing has to wait for him.
	PerEpoch bool
	// Buffer is how many epochs may wait with PerEpoch. Each keeps the memory in
	// which it differs from the next. With a Name it is ErrValue: nothing is left out,
	// and Options.Retention bounds what waits. Default 1024.
	Buffer int
	// Slow says what happens when more would have to wait. Default SlowCoalesce:
	// nothing is lost but the steps between.
	Slow SlowPolicy
	// Quiet leaves out the updates that change nothing. Default false: they tell how
	// far the answer is known to be as it was.
	Quiet bool
	// Where wants only the answers with the given terms in the named columns, which
	// are output variables (no aggregates). What others change costs nothing where
	// the relations of the query are kept in an order that begins with the column,
	// and else no more than to pass over each change. Default nil = all answers.
	Where map[string]Term
}

func (o *SubscribeOptions) validate() error {
	switch {
	case o.Mode > FromToken:
		return fmt.Errorf("%w: subscribe mode %d is not known", ErrValue, o.Mode)
	case o.Slow > SlowEnd:
		return fmt.Errorf("%w: slow policy %d is not known", ErrValue, o.Slow)
	case o.Buffer < 0:
		return fmt.Errorf("%w: a buffer of %d epochs", ErrValue, o.Buffer)
	case o.Name != "" && (o.Buffer > 0 || o.Slow != SlowCoalesce):
		return fmt.Errorf("%w: for a name every epoch is kept, without a buffer that it could be too slow for", ErrValue)
	case len(o.Name) > maxName:
		return fmt.Errorf("%w: a name of %d bytes, %d are allowed", ErrValue, len(o.Name), maxName)
	case o.Mode != FromToken && !o.Token.IsZero():
		return fmt.Errorf("%w: a token wants mode FromToken", ErrValue)
	}
	return nil
}

// Subscription tells how the answers of a query change, from epoch to epoch. It
// belongs to one consumer, who ranges over Updates; all the work is done in his
// goroutine, none by the writer.
//
// It ends, with the error that Updates yields last and Err returns, when the query is
// dropped (ErrNoSuchQuery, behind the updates up to the last epoch that has it; a
// new query of the same name is another one), when the context of Subscribe ends (its
// error), when the DB is closed (ErrClosed), with SlowEnd (ErrSlowSubscriber), when
// the store takes no more epochs and all that there are were told (ErrReadOnly), and
// when it was behind for longer than Options.MaxPinAge (ErrSnapshotExpired). After
// Close by its owner it is silent. ErrSlowSubscriber and ErrSnapshotExpired name
// the epoch that was told last; Token is the position to go on from.
//
// It keeps the memory that the epoch at its position needs, so one that is not
// used any more must be closed.
type Subscription struct {
	db       *DB
	name     string
	q        *catalog.Query
	view     *views.Query
	opts     SubscribeOptions
	where    []condition
	named    *subscriber // nil without a name
	follower rootvec.Follower
	ctx      context.Context
	stop     func() bool   // stops waiting for the end of ctx
	done     chan struct{} // closed at the end
	over     atomic.Pointer[error]
	ranging  atomic.Bool
	idle     atomic.Pointer[walker]
	step     atomic.Uint64 // how many updates have been told

	mu     sync.Mutex
	untold bool      // the whole answer is wanted and was not told
	at     *Snapshot // the position, nil at the end
	to     *Snapshot // of the update that is being told, nil between updates
	shown  *Snapshot // what the consumer of that update has asked for
	epoch  Epoch     // of the position, or of the whole answer
	behind time.Time // since when there is something newer, zero if there is not
}

// condition is a column that has to have a term.
type condition struct {
	v    query.Var
	term Term
}

// Subscribe begins to tell how the answers of a registered query change. The
// context ends the subscription, whenever it ends itself. Close it in the end.
//
// Errors: ErrNoSuchQuery (also if the query was not there at the epoch of the token),
// ErrValue (options, an unknown column of Where), ErrTimeline (the token is of another
// store, or of a history that was given up by a restore or a crash), ErrTooOld (its
// epoch is not kept any more, see Options.RetainedEpochs; the message names the
// oldest that is). With a name also ErrNameInUse (another subscription has it),
// ErrTimeline and ErrTooOld (its place is gone, see Options.Retention; Forget it),
// ErrReadOnly, and those of writing the place. ErrClosed and ctx's. After ErrTimeline
// and ErrTooOld a subscription with SnapshotFirst begins anew. Cost is constant, and
// with a name at most one sync.
func (db *DB) Subscribe(ctx context.Context, query string, opts SubscribeOptions) (*Subscription, error) {
	s, err := db.subscribe(ctx, query, opts)
	if err != nil {
		return nil, edge(err)
	}
	return s, nil
}

func (db *DB) subscribe(ctx context.Context, name string, opts SubscribeOptions) (*Subscription, error) {
	if err := db.check(ctx); err != nil {
		return nil, err
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts.Buffer = cmp.Or(opts.Buffer, defaultBuffer)
	opts.Where = maps.Clone(opts.Where)
	s := &Subscription{db: db, name: name, opts: opts, ctx: ctx, done: make(chan struct{})}
	s.follower = rootvec.Follower{Each: opts.PerEpoch, Buffer: uint64(opts.Buffer), Holds: s.holds}
	if opts.Name != "" {
		return s, s.beginNamed()
	}
	v, err := s.attach(&s.follower, s.find)
	if err == nil {
		err = s.begins(v)
	}
	if err == nil {
		err = s.opens()
	}
	return s, err
}

// begins puts the subscription at a vector that is pinned for it, where its follower
// is.
func (s *Subscription) begins(v *rootvec.Vector) (err error) {
	at := s.db.pinned(v)
	if s.q == nil {
		err = fmt.Errorf("%w: %q at epoch %d", ErrNoSuchQuery, s.name, v.Epoch)
	} else {
		err = s.choose()
	}
	if err != nil {
		at.end(ErrClosed)
		s.leave()
		return err
	}
	s.epoch, s.untold = at.epoch, s.opts.Mode == SnapshotFirst
	s.at = at
	return nil
}

// opens makes the subscription one of those that are open.
func (s *Subscription) opens() error {
	s.mu.Lock() // which end waits for
	s.stop = context.AfterFunc(s.ctx, func() { s.end(s.ctx.Err()) })
	s.mu.Unlock()
	if !s.db.enlist(s) {
		s.end(ErrClosed)
		return ErrClosed
	}
	return nil
}

// attach pins the vector at which a subscription begins that is new, with a follower
// of its place. find is called with its catalog.
func (s *Subscription) attach(f *rootvec.Follower, find func(rootvec.Catalog)) (*rootvec.Vector, error) {
	current := &s.db.engine.Current
	if s.opts.Mode != FromToken {
		return current.Follow(f, find), nil
	}
	t := s.opts.Token
	if err := s.db.known(t); err != nil {
		return nil, err
	}
	v, oldest := current.FollowFrom(f, uint64(t.epoch), find)
	switch {
	case v != nil:
		return v, nil
	case uint64(t.epoch) < oldest:
		return nil, fmt.Errorf("%w: epoch %d, the oldest that is kept is %d", ErrTooOld, t.epoch, oldest)
	}
	return nil, fmt.Errorf("%w: epoch %d of the token has not come yet", ErrTimeline, t.epoch)
}

// find takes the query that has the name in the catalog at which the subscription
// begins.
func (s *Subscription) find(c rootvec.Catalog) {
	schema := c.(*epoch.Schema)
	if q, err := schema.Query(s.name); err == nil {
		s.q, s.view = q, schema.Views[s.name]
	}
}

// holds reports whether a catalog has the query, and not another one of its name.
func (s *Subscription) holds(c rootvec.Catalog) bool {
	v, ok := c.(*epoch.Schema).Views[s.name]
	return ok && v == s.view
}

// choose finds the variables of the columns in Where.
func (s *Subscription) choose() error {
	p := s.q.Plan.Query
	for _, column := range slices.Sorted(maps.Keys(s.opts.Where)) {
		i := slices.Index(p.Columns, column)
		if i < 0 {
			return fmt.Errorf("%w: query %s has no column %q for Where", ErrValue, s.name, column)
		}
		t := s.opts.Where[column]
		if t.IsZero() {
			return fmt.Errorf("%w: the absent term for column %q", ErrValue, column)
		}
		s.where = append(s.where, condition{p.Head[i], t})
	}
	return nil
}

// pinned makes a snapshot of a vector that is pinned already, which nobody but its
// owner knows.
func (db *DB) pinned(v *rootvec.Vector) *Snapshot {
	return &Snapshot{db: db, vector: v, epoch: Epoch(v.Epoch), time: v.Time, sources: v.Sources}
}

// Query is the name of the query.
func (s *Subscription) Query() string { return s.name }

// Name is the durable name, "" without one.
func (s *Subscription) Name() string { return s.opts.Name }

// Token is the position: that behind the update that was told last, at first the one
// where the subscription begins. Under SnapshotFirst it is the zero Token until the
// whole answer was told.
func (s *Subscription) Token() Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.untold {
		return Token{}
	}
	return s.db.token(s.epoch)
}

// Err is why the subscription has ended, nil while it goes on and after Close.
func (s *Subscription) Err() error {
	if err := s.ended(); err != nil && err != errUnsubscribed { //nolint:errorlint // exactly this
		return edge(err)
	}
	return nil
}

// Close ends the subscription: whoever waits in Updates returns, and an update that
// is being told ends with ErrSnapshotClosed at its next step. A second Close does nothing.
func (s *Subscription) Close() error {
	s.end(errUnsubscribed)
	return nil
}

// errUnsubscribed is the reason of a subscription that its owner has closed. It
// leaves the package as what became of the snapshots.
var errUnsubscribed = fmt.Errorf("%w: by the end of its subscription", ErrSnapshotClosed)

// ended is why the subscription has ended, nil while it goes on.
func (s *Subscription) ended() error {
	if p := s.over.Load(); p != nil {
		return *p
	}
	return nil
}

// end ends the subscription and reports whether it went on until now.
func (s *Subscription) end(reason error) bool {
	if !s.over.CompareAndSwap(nil, &reason) {
		return false
	}
	close(s.done)
	s.db.strike(s)
	s.mu.Lock()
	at, to, shown, stop := s.at, s.to, s.shown, s.stop
	s.at, s.to = nil, nil
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	for _, snapshot := range []*Snapshot{at, to, shown} {
		if snapshot != nil {
			snapshot.end(reason)
		}
	}
	s.leave()
	if s.named != nil {
		s.db.detach(s)
	}
	return true
}

// leave gives back what is kept for the subscription.
func (s *Subscription) leave() {
	if s.db.engine.Current.Leave(&s.follower) {
		s.db.engine.TryCollect()
	}
}
