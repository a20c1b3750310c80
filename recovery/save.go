package recovery

import (
	"context"
	"os"
	"time"

	"github.com/triegs/triegs/checkpoint"
	"github.com/triegs/triegs/epoch"
)

// lingerDefault is how long after a checkpoint and after the last epoch behind it
// the directory stays open for the next checkpoint, which is then spared some ten
// milliseconds. A store that is quiet does not miss them.
const lingerDefault = 2 * time.Second

// logged is what the log has taken, by which a store that is in use is told from
// one that is quiet. Only a store with a log takes checkpoints that linger.
func (s *Store) logged() uint64 {
	if s.Log == nil {
		return 0
	}
	return s.Log.Written()
}

// saver lets one checkpoint run at a time, and one backup beside it: two that
// copy into one directory would be in each other's way.
type saver struct {
	turn   chan struct{} // holds one token while somebody saves
	copies chan struct{} // holds one token while somebody makes a backup
	saved  uint64        // the epoch of the newest checkpoint
}

// Saved says what a checkpoint cost.
type Saved struct {
	Epoch   uint64 // of the checkpoint
	Written bool   // false: the newest checkpoint was of this epoch already
	Full    bool   // all of the state, not what has changed alone
	Bytes   int64  // written
	Took    time.Duration
	// Cut is what was freed of the log; CutErr is why nothing was, which leaves
	// the checkpoint as good as it is.
	Segments int
	Freed    int64
	CutErr   error
}

// take waits for the token of a turn. With an error, also that of a context which
// had ended before, it is not taken.
func take(ctx context.Context, turn chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeTurn waits until nobody else saves.
func (s *Store) takeTurn(ctx context.Context) error { return take(ctx, s.saver.turn) }

func (s *Store) giveTurn() { <-s.saver.turn }

// Checkpoint saves the state after the last applied epoch while later ones are
// applied, then cuts the log behind the older of the two checkpoints that are
// kept, or what is wanted (Options.Wanted) needs. Where nothing has happened since the newest one it does nothing.
//
// Until there was no epoch for two seconds (two and a half at most), or until Close,
// the directory of the checkpoints stays open for the next one, with five goroutines
// and eight files; without TermCache an idle store has neither.
//
// An error leaves the older checkpoints and the log as they were. Cost: what has
// changed since the newest checkpoint; now and then, so that the sum of what is
// kept stays within a small multiple of the state, all of it.
func (s *Store) Checkpoint(ctx context.Context) (Saved, error) {
	if err := s.takeTurn(ctx); err != nil {
		return Saved{}, err
	}
	defer s.giveTurn()
	return s.checkpoint(ctx)
}

func (s *Store) checkpoint(ctx context.Context) (Saved, error) {
	start := s.o.Now()
	report, err := s.save(ctx)
	if err != nil || !report.Written {
		return report, err
	}
	s.saver.saved = report.Epoch
	if older, ok := s.checkpoints.Older(); ok {
		through := older.LogIndex
		if base, ok := s.needed(report.Epoch); ok {
			through = min(through, base.LogIndex)
		}
		report.Segments, report.Freed, report.CutErr = s.Log.DropThrough(ctx, through)
	}
	report.Took = s.o.Now().Sub(start)
	return report, nil
}

func (s *Store) save(ctx context.Context) (report Saved, err error) {
	if e := s.Engine.Current.Epoch(); s.hasSaved(e) {
		return Saved{Epoch: e}, nil
	}
	if err := s.there(); err != nil {
		return report, err
	}
	before, first := s.checkpoints.Stats().BytesWritten, uint64(1)
	w, err := s.checkpoints.Begin(ctx)
	if err != nil {
		return report, err
	}
	if !w.Full() {
		first = s.checkpoints.List()[0].LastTerm + 1
	}
	defer func() {
		if err != nil {
			w.Abort()
		}
	}()
	f, err := s.Engine.Freeze(ctx, w.Full())
	if err != nil {
		return report, err
	}
	committed := false
	defer func() { s.Engine.Thaw(f, committed) }()
	if err := s.write(ctx, w, f, first); err != nil {
		return report, err
	}
	// What is in a checkpoint must be in the log as well: the log is the proof
	// of what was acknowledged.
	if err := s.durable(ctx, f.Epoch); err != nil {
		return report, err
	}
	base, _ := s.needed(f.Epoch)
	s.checkpoints.Hold(base.Generation)
	if err := w.Commit(ctx, s.header(f)); err != nil {
		return report, err
	}
	committed = true
	report = Saved{Epoch: f.Epoch, Written: true, Full: w.Full(), Bytes: s.checkpoints.Stats().BytesWritten - before}
	if s.o.TermCache > 0 {
		if err := s.Engine.SpillTerms(f.LastTerm, s.checkpoints, s.o.TermCache); err != nil {
			return report, err
		}
	}
	return report, nil
}

// hasSaved reports whether the newest checkpoint is of epoch e. One that is known
// to be damaged counts for nothing: another one of the same epoch is worth while.
func (s *Store) hasSaved(e uint64) bool {
	list := s.checkpoints.List()
	return len(list) > 0 && list[0].Err == nil && list[0].Epoch == e && s.saver.saved == e
}

// there refuses to save into a directory that somebody has removed: making it
// anew would leave checkpoints without the store that they belong to.
func (s *Store) there() error {
	if s.o.FS != nil || s.dir == "" {
		return nil // not where the log is; a copy that is being made
	}
	_, err := os.Stat(s.dir)
	return err
}

// durable returns when the epoch is on stable storage.
func (s *Store) durable(ctx context.Context, e uint64) error {
	if s.Log == nil {
		return nil // a copy of what does not change
	}
	if err := s.Engine.WaitFor(ctx, e); err != nil {
		return err
	}
	if s.Log.Durable() >= e {
		return nil
	}
	return s.Log.Sync(ctx)
}

// sliceFacts is how many facts are read while writers wait, some hundred
// microseconds. Tests with few facts make it smaller.
var sliceFacts = 1024

// termBytes is how many bytes of terms are saved between two looks at whether
// there are writers.
const termBytes = 32 << 10

// write hands the facts of f and its terms from first on to w, slower while
// there are writers.
func (s *Store) write(ctx context.Context, w *checkpoint.Writer, f *epoch.Frozen, first uint64) error {
	r := rest{now: s.o.Now, last: s.Engine.Current.Epoch, seen: f.Epoch}
	var chunk []byte
	for more := true; more; {
		if s.o.slice != nil {
			s.o.slice()
		}
		var err error
		if chunk, more, err = s.Engine.Slice(ctx, f, chunk[:0], sliceFacts); err != nil {
			return err
		}
		if len(chunk) > 0 {
			if err := w.Facts(chunk); err != nil {
				return err
			}
		}
		if err := r.after(ctx, len(chunk)); err != nil {
			return err
		}
	}
	bytes := 0
	return f.Terms.Each(first, f.LastTerm, func(id uint64, form []byte) error {
		if bytes += len(form); bytes >= termBytes {
			if err := r.after(ctx, bytes); err != nil {
				return err
			}
			bytes = 0
		}
		return w.Term(id, form)
	})
}

// header is what a checkpoint says of a frozen state.
func (s *Store) header(f *epoch.Frozen) checkpoint.Header {
	h := checkpoint.Header{
		Epoch: f.Epoch, Time: f.Time, LogIndex: f.Epoch, LastTerm: f.LastTerm,
		StoreID: s.id.Log, Timeline: s.id.Timeline, Digest: f.Digest,
		Lateness: f.Lateness, Clocked: f.Clocked, EventTime: f.EventTime, Waiting: f.Waiting,
	}
	for i, r := range f.Catalog.Relations() {
		h.Relations = append(h.Relations, checkpoint.Relation{
			Name: r.Name, Arity: r.Arity, Facts: int64(f.Facts[i]), Digest: f.Parts[i], Next: f.Next[i], Keep: r.Keep,
		})
	}
	for _, q := range f.Catalog.Queries() {
		h.Queries = append(h.Queries, checkpoint.Query{
			Name: q.Name, Text: q.Text, Set: q.Set, Distinct: q.Dist, Window: checkpoint.Window(q.Window),
			Epoch: q.Epoch, Plan: q.Plan.Fingerprint(),
		})
	}
	for name, src := range f.Sources.All() {
		h.Sources = append(h.Sources, checkpoint.Source{
			Name: name, Incarnation: src.Incarnation, Next: src.Next, Skipped: src.Skipped,
			Watermark: src.Watermark, HasWatermark: src.HasWatermark, Explicit: src.Explicit,
		})
	}
	return h
}
