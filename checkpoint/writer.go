package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/triegs/triegs/checkpoint/vault"
	"github.com/triegs/triegs/internal/errs"
)

const (
	// increments may grow to half of the full element, or to this if that is
	// more, before a new generation is begun: loading reads at most half as
	// much again as it must.
	incrementsMin = 1 << 20

	// elementsMax bounds a chain of very small increments, each a file.
	elementsMax = 1000

	// pendingMax is how much of term blocks is held back so that a small
	// element is one file: they can follow the facts only when those are done.
	pendingMax = 1 << 20

	// valueMax bounds a chunk and a term, well below what Pebble takes.
	valueMax = 256 << 20

	// spaceEvery is how many bytes are written between two looks at the disk.
	spaceEvery = 4 << 20
)

// Writer makes one element. It is for one goroutine. After an error everything
// but Abort gives the same error; nothing of the element is kept then. A
// Writer ends with Commit or Abort.
type Writer struct {
	s    *Store
	ctx  context.Context
	full bool
	at   place
	prev element // Zero if full.

	sequence uint64 // Of the checkpoint before.

	pace  pace
	room  int64 // Bytes until the disk is looked at again.
	paths []string
	facts *vault.TableWriter // nil until needed.
	terms *vault.TableWriter // nil while blocks are pending.
	sizes map[*vault.TableWriter]int64

	audit    audit
	block    block
	pending  []block
	held     int
	lastTerm uint64
	floor    bool // Ids must lie above lastTerm.
	key      []byte

	err  error
	done bool
}

// Begin starts a checkpoint and decides whether it is a full one. ctx holds
// for the Writer: when it ends, so do writes that wait for their turn. Too
// little space on the disk is an error that wraps ENOSPC.
//
// An element is full if there is none, after RequireFull or known damage, when
// the increments of the chain, together with another one like the last, exceed
// half of the full element's bytes (at least 1 MiB), and after 1000 elements.
func (s *Store) Begin(ctx context.Context) (*Writer, error) {
	if s.o.ReadOnly {
		return nil, fmt.Errorf("checkpoint in %s: %w", s.dir, errs.ErrReadOnly)
	}
	if err := s.startWriting(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	w := &Writer{s: s, ctx: ctx, pace: pace{rate: s.o.BytesPerSecond}, room: spaceEvery}
	w.plan(s.mu.elements, s.mu.fresh)
	expected := w.expect(s.mu.elements)
	s.mu.Unlock()
	w.sizes = map[*vault.TableWriter]int64{}
	if err := s.space(expected); err != nil {
		return nil, w.giveUp(err)
	}
	if err := s.makeTemp(); err != nil {
		return nil, w.giveUp(err)
	}
	return w, nil
}

// startWriting takes the place of the one writer, after mending what an
// earlier one may have left. Neither here nor elsewhere is s.mu held while the
// disk is waited for.
func (s *Store) startWriting(ctx context.Context) error {
	s.mu.Lock()
	var err error
	switch {
	case s.mu.closed:
		err = fmt.Errorf("checkpoint in %s: %w", s.dir, errs.ErrClosed)
	case s.mu.writing:
		err = fmt.Errorf("checkpoint in %s: another one is being written", s.dir)
	case s.mu.stuck != nil:
		err = fmt.Errorf("checkpoint in %s: %w", s.dir, s.mu.stuck)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	default:
		s.mu.writing = true
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	err = s.takeOver(ctx)
	if err == nil {
		err = s.mend(ctx)
	}
	if err != nil {
		s.stopWriting()
	}
	return err
}

// stopWriting lets another writer begin, for which the vault lingers.
func (s *Store) stopWriting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.writing = false
	s.lingerLocked()
}

// mend puts away a vault that can do nothing any more, and looks again after a
// commit whose outcome is unknown.
func (s *Store) mend(ctx context.Context) error {
	s.mu.Lock()
	v, stale := s.mu.kept, s.mu.stale
	if v != nil && v.Err() != nil {
		s.mu.kept = nil
	} else {
		v = nil
	}
	s.mu.Unlock()
	if v != nil {
		if err := s.unlessStuck(v.Close()); err != nil {
			return err
		}
	}
	if !stale {
		return nil
	}
	list, err := s.lookOver(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// What arrived although its Commit failed is a checkpoint, but the caller
	// still counts from the one before.
	n, m := len(list), len(s.mu.elements)
	if n > 0 && (m == 0 || list[n-1].sum != s.mu.elements[m-1].sum) {
		s.mu.fresh = true
	}
	s.installLocked(list)
	return nil
}

// plan decides what the element is.
func (w *Writer) plan(list []element, fresh bool) {
	w.full = true
	w.at = place{gen: 1}
	n := len(list)
	if n == 0 {
		return
	}
	last := &list[n-1]
	w.at = place{gen: last.gen + 1}
	if i := newestGood(list, n-1); i >= 0 {
		w.sequence = list[i].sequence
	}
	w.sequence = max(w.sequence, last.sequence)
	c := chain(list, n-1)
	if fresh || flaw(c) != nil || len(c) >= elementsMax {
		return
	}
	sum := int64(0)
	for _, e := range c[1:] {
		sum += e.bytes
	}
	if len(c) > 1 {
		sum += last.bytes
	}
	if sum > max(c[0].bytes/2, incrementsMin) {
		return
	}
	w.full = false
	w.at = last.after()
	w.prev = *last
	w.lastTerm, w.floor = last.lastTerm, true
}

// expect guesses the size of the element from the last one of its kind.
func (w *Writer) expect(list []element) int64 {
	for i := len(list) - 1; i >= 0; i-- {
		if (list[i].el == 0) == w.full {
			return list[i].bytes
		}
	}
	return 0
}

// space tells whether need bytes fit on the disk and leave the reserve. A file
// system that cannot say has room.
func (s *Store) space(need int64) error {
	if s.o.Reserve < 0 {
		return nil
	}
	at, _ := existing(s.o.FS, s.dir)
	usage, err := s.o.FS.GetDiskUsage(at)
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the space of %s: %w", at, err)
	}
	if want := uint64(need + s.o.Reserve); usage.AvailBytes < want {
		return fmt.Errorf("checkpoint in %s: %d bytes needed, %d free: %w", s.dir, want, usage.AvailBytes, syscall.ENOSPC)
	}
	return nil
}

// Full tells whether the element must hold everything, or what changed since
// the checkpoint before.
func (w *Writer) Full() bool { return w.full }

// Facts writes a chunk of facts. The bytes are the caller's business; chunks
// come back in the order written. A chunk of about 64 KiB is a good size.
func (w *Writer) Facts(chunk []byte) error {
	if err := w.usable(); err != nil {
		return err
	}
	if len(chunk) == 0 || len(chunk) > valueMax {
		return w.fail(fmt.Errorf("a chunk of %d bytes", len(chunk)))
	}
	t, err := w.table(&w.facts, "facts")
	if err != nil {
		return w.fail(err)
	}
	w.key = w.at.key(w.key[:0], sectionFacts, w.audit.chunks)
	w.audit.chunk(chunk)
	return w.fail(w.put(t, w.key, chunk))
}

// Term writes a term. Ids ascend, and in an incremental element lie above the
// LastTerm of the checkpoint before. Terms and facts may come in any order.
func (w *Writer) Term(id uint64, form []byte) error {
	if err := w.usable(); err != nil {
		return err
	}
	if id <= w.lastTerm && w.floor {
		return w.fail(fmt.Errorf("term %d after term %d", id, w.lastTerm))
	}
	if len(form) > valueMax || id == math.MaxUint64 {
		return w.fail(fmt.Errorf("term %d of %d bytes", id, len(form)))
	}
	w.lastTerm, w.floor = id, true
	w.block.add(id, form)
	if len(w.block.p) < blockTarget {
		return nil
	}
	return w.fail(w.closeBlock())
}

// closeBlock hands the block on: to the pending ones, or to its table.
func (w *Writer) closeBlock() error {
	if len(w.block.p) == 0 {
		return nil
	}
	b := w.block
	w.audit.block(b.first, b.terms, b.p)
	if w.terms != nil {
		w.block = block{p: b.p[:0]}
		return w.putBlock(w.terms, &b)
	}
	w.block = block{}
	w.pending = append(w.pending, b)
	if w.held += len(b.p); w.held < pendingMax {
		return nil
	}
	t, err := w.table(&w.terms, "terms")
	if err != nil {
		return err
	}
	return w.putPending(t)
}

// putPending writes the blocks that were held back.
func (w *Writer) putPending(t *vault.TableWriter) error {
	for i := range w.pending {
		if err := w.putBlock(t, &w.pending[i]); err != nil {
			return err
		}
	}
	w.pending, w.held = nil, 0
	return nil
}

func (w *Writer) putBlock(t *vault.TableWriter, b *block) error {
	w.key = w.at.key(w.key[:0], sectionTerms, b.first)
	return w.put(t, w.key, b.p)
}

// table gives the table at *t, which is made when it is first needed.
func (w *Writer) table(t **vault.TableWriter, section string) (*vault.TableWriter, error) {
	if *t != nil {
		return *t, nil
	}
	path := w.s.tempPath(section)
	w.paths = append(w.paths, path)
	made, err := vault.Create(w.s.o.FS, path)
	if err != nil {
		return nil, err
	}
	*t = made
	return made, nil
}

// tempPath names a temporary table that no other attempt has named.
func (s *Store) tempPath(section string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.attempts++
	return s.o.FS.PathJoin(s.tmp, fmt.Sprintf("%06d-%s.sst", s.mu.attempts, section))
}

// put writes one pair, no faster than allowed, and looks at the disk at times.
func (w *Writer) put(t *vault.TableWriter, key, value []byte) error {
	if err := t.Add(key, value); err != nil {
		return err
	}
	n := t.Bytes() - w.sizes[t]
	w.sizes[t] += n
	if w.room -= n; w.room < 0 {
		w.room = spaceEvery
		if err := w.s.space(0); err != nil {
			return err
		}
	}
	return w.pace.wait(w.ctx, n)
}

// usable gives the error that ended the Writer.
func (w *Writer) usable() error {
	if w.done && w.err == nil {
		return errors.New("checkpoint writer is done")
	}
	if w.err == nil && w.ctx.Err() != nil {
		return w.fail(context.Cause(w.ctx))
	}
	return w.err
}

// fail ends the Writer if err is not nil.
func (w *Writer) fail(err error) error {
	if err == nil {
		return nil
	}
	return w.giveUp(fmt.Errorf("write checkpoint: %w", err))
}

// giveUp removes everything of the element and remembers why.
func (w *Writer) giveUp(err error) error {
	if w.done {
		return err
	}
	w.err = err
	w.release()
	w.s.mu.Lock()
	w.s.mu.stats.Failed++
	w.s.mu.Unlock()
	return err
}

// release closes and removes the files and lets another Writer begin.
func (w *Writer) release() {
	w.done = true
	for _, t := range []*vault.TableWriter{w.facts, w.terms} {
		if t != nil {
			_ = t.Finish()
		}
	}
	w.facts, w.terms, w.pending = nil, nil, nil
	w.s.clean(w.paths)
	w.s.stopWriting()
}

// Abort gives the element up. After Commit or an error it does nothing.
func (w *Writer) Abort() {
	if !w.done {
		w.err = errors.New("checkpoint writer was aborted")
		w.release()
	}
}

// Commit completes the element with its header and lets it in. If it returns
// nil, the checkpoint is durable and the newest one. After an error it is not
// there, unless the error came from Pebble in a state where nobody can know;
// then the next Begin finds out. ctx is honoured until the tables are written.
func (w *Writer) Commit(ctx context.Context, h Header) error {
	if err := w.usable(); err != nil {
		return err
	}
	e, err := w.finish(h)
	if err != nil {
		return w.fail(err)
	}
	if err := ctx.Err(); err != nil {
		return w.fail(context.Cause(ctx))
	}
	w.s.mu.Lock()
	excise := plannedExcise(w.s.mu.elements, w.at, w.s.mu.hold)
	w.s.mu.Unlock()
	if err := w.s.letIn(ctx, w.paths, excise, func(list []element) bool {
		i := find(list, e.place)
		return i >= 0 && list[i].sum == e.sum
	}); err != nil {
		return w.fail(err)
	}
	var bytes int64
	for _, n := range w.sizes {
		bytes += n
	}
	w.release()
	w.s.count(w.full, bytes)
	return nil
}

// count records a committed element.
func (s *Store) count(full bool, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if full {
		s.mu.stats.Full++
		s.mu.fresh = false
	} else {
		s.mu.stats.Incremental++
	}
	s.mu.stats.BytesWritten += bytes
}

// finish writes what was held back and the trailer, and completes the tables.
func (w *Writer) finish(h Header) (element, error) {
	if err := w.s.checkStore(&h); err != nil {
		return element{}, err
	}
	if h.LastTerm < w.lastTerm {
		return element{}, fmt.Errorf("term %d above the last term %d of the header", w.lastTerm, h.LastTerm)
	}
	if err := w.closeBlock(); err != nil {
		return element{}, err
	}
	last := &w.terms
	if w.terms == nil {
		// Everything fits behind the facts.
		last = &w.facts
	}
	t, err := w.table(last, "element")
	if err != nil {
		return element{}, err
	}
	if err := w.putPending(t); err != nil {
		return element{}, err
	}
	h.Sequence = w.sequence + 1
	tr := trailer{place: w.at, prev: w.prev.sum, audit: w.audit, header: h}
	value := tr.appendTo(nil)
	e := element{place: w.at, epoch: h.Epoch, logIndex: h.LogIndex, lastTerm: h.LastTerm, sequence: h.Sequence, sum: sumOf(value)}
	if err := w.put(t, e.trailerKey(), value); err != nil {
		return element{}, err
	}
	for _, t := range []**vault.TableWriter{&w.facts, &w.terms} {
		if *t == nil {
			continue
		}
		done := *t
		*t = nil
		if err := done.Finish(); err != nil {
			return element{}, err
		}
	}
	return e, nil
}

// plannedExcise gives the keys that are dropped when the element at is let in.
// What is behind the newest good element is known to be damaged and goes
// first; else what is before the generation of the checkpoint that becomes the
// older one, but for the generation hold: what is on the one side of that, and
// where there is nothing what is on the other.
func plannedExcise(list []element, at place, hold uint64) *vault.Span {
	good := newestGood(list, len(list)-1)
	if good < len(list)-1 {
		return &vault.Span{First: list[good+1].prefix(nil), End: at.after().prefix(nil)}
	}
	if good < 0 {
		return nil
	}
	first, end := place{}, list[good].gen
	for i := range list {
		if i > 0 {
			first = place{gen: list[i].gen}
		}
		switch gen := list[i].gen; {
		case gen >= end:
			return nil
		case gen == hold:
			continue
		case gen < hold:
			return &vault.Span{First: place{}.prefix(nil), End: place{gen: min(end, hold)}.prefix(nil)}
		default:
			return &vault.Span{First: first.prefix(nil), End: place{gen: end}.prefix(nil)}
		}
	}
	return nil
}

// letIn has Pebble ingest the tables at paths and reads the state anew. arrived
// tells whether a state has what was let in.
func (s *Store) letIn(ctx context.Context, paths []string, excise *vault.Span, arrived func([]element) bool) error {
	v, err := s.writeVault(ctx)
	if err != nil {
		return err
	}
	err = v.Ingest(ctx, paths, excise)
	var list []element
	if err == nil {
		list, err = s.lookOver(ctx)
		if err == nil && !arrived(list) {
			err = fmt.Errorf("checkpoint in %s: not there after it was let in", s.dir)
		}
	}
	s.mu.Lock()
	if err == nil {
		s.installLocked(list)
	} else {
		s.mu.stale = true
	}
	// What was let in stays in, so an error of Close is none of Commit; a vault
	// that is unusable is left for the next Begin, or for Close.
	lingers := s.o.Linger > 0 && err == nil
	shut := !s.o.KeepOpen && !lingers && v.Err() == nil && s.mu.kept == v
	if shut {
		s.mu.kept = nil
	}
	s.mu.Unlock()
	if shut {
		_ = s.unlessStuck(v.Close())
	}
	return err
}

// unlessStuck drops an error of Close, unless it means that this process cannot
// write here any more: then it is what every later attempt gives.
func (s *Store) unlessStuck(err error) error {
	if !errors.Is(err, vault.ErrStuck) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.stuck = err
	return fmt.Errorf("checkpoint in %s: %w", s.dir, err)
}

// writeVault gives the vault for writing: the one that is kept, or a new one.
func (s *Store) writeVault(ctx context.Context) (*vault.Vault, error) {
	s.mu.Lock()
	v := s.mu.kept
	s.mu.Unlock()
	if v != nil {
		return v, nil
	}
	v, err := vault.Open(ctx, s.dir, s.vaultOptions(false))
	if err != nil {
		_ = s.unlessStuck(err)
		return nil, err
	}
	s.mu.Lock()
	closed := s.mu.closed
	if !closed {
		s.mu.kept = v
	}
	s.mu.Unlock()
	if closed {
		return nil, errors.Join(fmt.Errorf("checkpoint in %s: %w", s.dir, errs.ErrClosed), v.Close())
	}
	return v, nil
}

// pace bounds a speed without a clock: it waits after every piece for as long
// as the piece may take, so that the time spent otherwise comes on top.
type pace struct {
	rate int64 // Bytes per second, 0 for any.
	debt int64
}

// paceMin is the shortest wait worth a timer.
const paceMin = 5 * time.Millisecond

// wait waits for n bytes.
func (p *pace) wait(ctx context.Context, n int64) error {
	if p.rate <= 0 {
		return nil
	}
	p.debt += n
	d := time.Duration(float64(p.debt) / float64(p.rate) * float64(time.Second))
	if d < paceMin {
		return nil
	}
	p.debt = 0
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
