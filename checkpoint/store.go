package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/triegs/triegs/checkpoint/vault"
	"github.com/triegs/triegs/internal/errs"
)

// ErrNoTerm is the error of [Store.Form] for an id that the newest checkpoint
// does not have.
var ErrNoTerm = errors.New("no such term in the checkpoint")

const (
	// reserveDefault is left free on the disk for the log and for others.
	reserveDefault = 16 << 20

	// looksMax bounds how often a directory is looked at again because a
	// writer changed it meanwhile.
	looksMax = 6
)

// Options say how a Store is opened. The zero value is a writer on the file
// system of the operating system that belongs to any store.
type Options struct {
	// FS is where the directory is; nil is vfs.Default.
	FS vfs.FS

	// ReadOnly changes nothing and may stand beside a writer.
	ReadOnly bool

	// StoreID is the store that checkpoints must be of; zero takes any.
	StoreID [16]byte

	// KeepOpen keeps Pebble open between calls, which Form needs. Without it
	// Pebble is opened for each call that needs it (5 to 15 ms for a Writer) and an
	// idle Store costs nothing.
	KeepOpen bool

	// Linger keeps Pebble open for so long after each Writer and CopyTo, so that
	// one that follows meanwhile does not open it again. A Store lingers with
	// five goroutines, eight files, the lock of the directory and 0.3 MB; then,
	// or with Close, it gives them back. 0 gives them back at once; KeepOpen
	// never does.
	Linger time.Duration

	// Activity, if it is not nil, gives a number that is another one whenever
	// what the checkpoints are of has changed: then Pebble is open for Linger
	// behind the last change as well, and up to a quarter longer. It is called
	// four times in that time, while a Store lingers, on any goroutine, and must
	// not block.
	Activity func() uint64

	// BytesPerSecond bounds the speed at which elements are written; 0 does not.
	BytesPerSecond int64

	// Reserve is the number of bytes that must stay free on the disk; 0 is
	// 16 MiB, negative asks for none.
	Reserve int64

	// Timeout bounds each call of Pebble that changes something; 0 is a minute.
	Timeout time.Duration

	// Event is told what Pebble complains about. It is called on any goroutine
	// and must not block. nil drops it.
	Event func(text string)

	// after is time.AfterFunc, but for tests that decide when time has passed.
	after func(d time.Duration, f func()) (stop func() bool)
}

// Info names one checkpoint.
type Info struct {
	Generation uint64
	Element    int // Its chain has Element + 1 elements.

	Sequence, Epoch, LogIndex, LastTerm uint64 // As in its header.

	Bytes int64 // Of the files of its chain.
	Files int
	Sum   uint64 // Checksum that vouches for the whole chain.

	// Err says what is known to be wrong with it, naming the file; nil says
	// only that nothing is known.
	Err error
}

// Stats are counts for metrics. Written, bytes and the rest since Open.
type Stats struct {
	Elements     int   // Kept.
	Files        int   // Kept.
	Bytes        int64 // Of the files kept.
	Full         int64 // Full elements written.
	Incremental  int64 // Incremental elements written.
	Failed       int64 // Writers that were begun and did not commit, Abort left out.
	BytesWritten int64
	LastDuration time.Duration // As Took was told.
}

// Store is the checkpoints of one store. Its methods may be called from any
// goroutine; one Writer is open at a time.
type Store struct {
	dir, tmp string
	o        Options

	mu struct {
		sync.Mutex
		closed   bool
		writing  bool
		fresh    bool   // The next element is a full one.
		stale    bool   // elements may be out of date: a commit went astray.
		hold     uint64 // A generation that stays, 0 if there is none.
		version  int    // Counts changes of elements.
		elements []element
		newest   []element    // The newest good chain of them.
		kept     *vault.Vault // With KeepOpen, while a commit runs, and while it lingers.
		stuck    error        // A vault did not close: why nothing can be written.
		attempts int          // Numbers temporary files.
		stats    Stats

		lingering *lingering // Not nil while kept waits for a timer, or that closes it.
	}
}

// Open looks at the checkpoints in dir. A missing directory has none; it is
// made by the first Commit. What a crashed write left in dir + ".tmp" is
// removed. Missing tables and such of another size are found here, damage
// inside them by Load; both spoil only the checkpoints that need them
// ([Info].Err). Damage of what ties the tables together is errs.ErrCorrupt,
// checkpoints of another store or of a later version are errs.ErrFormat.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Reserve == 0 {
		o.Reserve = reserveDefault
	}
	if o.after == nil {
		o.after = afterFunc
	}
	s := &Store{dir: dir, tmp: dir + ".tmp", o: o}
	if !o.ReadOnly {
		if err := o.FS.RemoveAll(s.tmp); err != nil {
			return nil, fmt.Errorf("remove what a crash left: %w", err)
		}
	}
	err := s.open(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open reads the state and, with KeepOpen, leaves Pebble open.
func (s *Store) open(ctx context.Context) error {
	pin := func([]element) []element { return nil }
	if s.o.KeepOpen {
		pin = newestChain
	}
	v, list, err := s.look(ctx, pin)
	if err != nil {
		return err
	}
	s.mu.elements = list
	if v == nil {
		return nil
	}
	if err := s.checkOwner(v); err != nil {
		return errors.Join(err, v.Close())
	}
	s.mu.newest = newestChain(list)
	if s.o.KeepOpen && s.o.ReadOnly {
		s.mu.kept = v
		return nil
	}
	if err := v.Close(); err != nil || !s.o.KeepOpen {
		return err
	}
	s.mu.kept, err = vault.Open(ctx, s.dir, s.vaultOptions(false))
	return err
}

// checkOwner reads the newest trailer that can be read and compares its store.
// A trailer that is damaged spoils its element.
func (s *Store) checkOwner(v *vault.Vault) error {
	for i := len(s.mu.elements) - 1; i >= 0; i-- {
		e := &s.mu.elements[i]
		if e.damage != nil {
			continue
		}
		t, err := readTrailer(v, e)
		switch {
		case errors.Is(err, errs.ErrCorrupt):
			e.damage = err
			continue
		case err != nil:
			return err
		}
		return s.checkStore(&t.header)
	}
	return nil
}

// checkStore refuses a header of another store.
func (s *Store) checkStore(h *Header) error {
	if s.o.StoreID != ([16]byte{}) && s.o.StoreID != h.StoreID {
		return fmt.Errorf("checkpoints in %s: %w: of store %x, not of %x", s.dir, errs.ErrFormat, h.StoreID, s.o.StoreID)
	}
	return nil
}

func (s *Store) vaultOptions(readOnly bool) vault.Options {
	return vault.Options{FS: s.o.FS, ReadOnly: readOnly, Timeout: s.o.Timeout, Event: s.o.Event}
}

// look opens the directory for reading, and pins the tables of the elements
// that pin chooses. Without checkpoints the vault is nil. What looks wrong is
// looked at again as long as a writer changes the directory meanwhile.
func (s *Store) look(ctx context.Context, pin func([]element) []element) (*vault.Vault, []element, error) {
	for try := 1; ; try++ {
		before := s.names()
		v, list, err := s.lookOnce(ctx, pin)
		sound := err == nil && !slices.ContainsFunc(list, func(e element) bool { return e.damage != nil })
		if sound || try == looksMax || ctx.Err() != nil || slices.Equal(before, s.names()) {
			return v, list, err
		}
		if v != nil {
			if err := v.Close(); err != nil {
				return nil, nil, err
			}
		}
	}
}

// lookOver gives the state of the directory.
func (s *Store) lookOver(ctx context.Context) ([]element, error) {
	v, list, err := s.look(ctx, func([]element) []element { return nil })
	if err == nil && v != nil {
		err = v.Close()
	}
	return list, err
}

// names lists the directory, to see whether it changes.
func (s *Store) names() []string {
	names, err := s.o.FS.List(s.dir)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	return names
}

// lookOnce is one try of look.
func (s *Store) lookOnce(ctx context.Context, pin func([]element) []element) (*vault.Vault, []element, error) {
	exists, err := vault.Exists(s.o.FS, s.dir)
	if err != nil || !exists {
		return nil, nil, err
	}
	v, err := vault.Open(ctx, s.dir, s.vaultOptions(true))
	if err != nil {
		return nil, nil, err
	}
	list, err := s.survey(v)
	if err != nil {
		return nil, nil, errors.Join(err, v.Close())
	}
	for _, e := range pin(list) {
		for _, t := range e.tables {
			if err := v.Pin(t); err == nil {
				continue
			} else if !errors.Is(err, errs.ErrCorrupt) {
				return nil, nil, errors.Join(err, v.Close())
			} else if i := find(list, e.place); list[i].damage == nil {
				list[i].damage = err
			}
		}
	}
	return v, list, nil
}

// survey lists the elements of a vault and looks at their files.
func (s *Store) survey(v *vault.Vault) ([]element, error) {
	tables, err := v.Tables()
	if err != nil {
		return nil, err
	}
	list, err := elements(tables)
	if err != nil {
		return nil, err
	}
	for i := range list {
		for _, t := range list[i].tables {
			err := v.Stat(t)
			if err != nil && !errors.Is(err, errs.ErrCorrupt) {
				return nil, err
			}
			if list[i].damage == nil {
				list[i].damage = err
			}
		}
	}
	return list, nil
}

// find gives the index of the element at a place, or -1.
func find(list []element, at place) int {
	return slices.IndexFunc(list, func(e element) bool { return e.place == at })
}

// chain gives the elements from the first of its generation up to index i.
func chain(list []element, i int) []element {
	start := i
	for start > 0 && list[start-1].gen == list[i].gen {
		start--
	}
	return list[start : i+1]
}

// flaw gives what is wrong with a chain.
func flaw(c []element) error {
	for _, e := range c {
		if e.damage != nil {
			return e.damage
		}
	}
	return nil
}

// newestGood gives the index of the newest element whose chain has no known
// flaw, looking from i downwards, or -1.
func newestGood(list []element, i int) int {
	for ; i >= 0; i-- {
		if flaw(chain(list, i)) == nil {
			break
		}
	}
	return i
}

// newestChain gives the newest good chain.
func newestChain(list []element) []element {
	if i := newestGood(list, len(list)-1); i >= 0 {
		return chain(list, i)
	}
	return nil
}

// info describes the checkpoint of element i.
func info(list []element, i int) Info {
	e, c := &list[i], chain(list, i)
	in := Info{
		Generation: e.gen, Element: int(e.el),
		Sequence: e.sequence, Epoch: e.epoch, LogIndex: e.logIndex, LastTerm: e.lastTerm,
		Sum: e.sum, Err: flaw(c),
	}
	for _, e := range c {
		in.Bytes += e.bytes
		in.Files += len(e.tables)
	}
	return in
}

// List gives the checkpoints in the directory, newest first, as Open, Refresh
// or the last Commit saw them. It reads no file. Only the first two without
// Err are kept on purpose, with a log that reaches back to them; the others
// are the older prefixes of their chains, and those of the generation that is held.
func (s *Store) List() []Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Info, 0, len(s.mu.elements))
	for i := len(s.mu.elements) - 1; i >= 0; i-- {
		list = append(list, info(s.mu.elements, i))
	}
	return list
}

// newest gives the newest checkpoint that is not known to be damaged.
func (s *Store) newest() (Info, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := newestGood(s.mu.elements, len(s.mu.elements)-1)
	if i < 0 {
		return Info{}, false
	}
	return info(s.mu.elements, i), true
}

// Older gives the older of the two kept checkpoints: the log may be cut behind
// its LogIndex and no further. Without two good ones it is false, and the log
// must stay whole.
func (s *Store) Older() (Info, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.mu.elements
	i := newestGood(list, len(list)-1)
	if i > 0 {
		i = newestGood(list, i-1)
	} else {
		i = -1
	}
	if i < 0 {
		return Info{}, false
	}
	return info(list, i), true
}

// RequireFull makes the next element a full one. A caller whose state did not
// come from the newest checkpoint needs it, since what it knows as changed is
// not what changed since that checkpoint.
func (s *Store) RequireFull() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.fresh = true
}

// Hold keeps a generation that Commit would drop, until another call says
// otherwise; 0 keeps none. The log that its checkpoints need is the caller's.
func (s *Store) Hold(generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.hold = generation
}

// Took records how long the last checkpoint took, for Stats: the caller has
// the clock.
func (s *Store) Took(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.stats.LastDuration = d
}

// Stats gives the counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.mu.stats
	for _, e := range s.mu.elements {
		st.Elements++
		st.Files += len(e.tables)
		st.Bytes += e.bytes
	}
	return st
}

// Refresh looks at the directory again. A read-only store beside a writer
// needs it to see new checkpoints. What was known to be damaged stays so.
func (s *Store) Refresh(ctx context.Context) error {
	pin := func([]element) []element { return nil }
	keep := s.o.KeepOpen && s.o.ReadOnly
	if keep {
		pin = newestChain
	}
	v, list, err := s.look(ctx, pin)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.installLocked(list)
	if keep && !s.mu.closed {
		v, s.mu.kept = s.mu.kept, v
	}
	s.mu.Unlock()
	if v != nil {
		return v.Close()
	}
	return nil
}

// installLocked makes list the state; s.mu must be held. Damage that was found
// in an element is kept as long as the element is the same.
func (s *Store) installLocked(list []element) {
	for i := range list {
		j := find(s.mu.elements, list[i].place)
		if j >= 0 && list[i].damage == nil && s.mu.elements[j].sum == list[i].sum {
			list[i].damage = s.mu.elements[j].damage
		}
	}
	s.mu.elements = list
	s.mu.newest = newestChain(list)
	s.mu.version++
	s.mu.stale = false
}

// spoil records damage found in an element. Form goes on to read what is whole of
// it, which nothing else has.
func (s *Store) spoil(e *element, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := find(s.mu.elements, e.place); i >= 0 && s.mu.elements[i].sum == e.sum && s.mu.elements[i].damage == nil {
		s.mu.elements = slices.Clone(s.mu.elements)
		s.mu.elements[i].damage = err
	}
}

// Close gives back what is open. Readers go on; a Writer that is open fails.
// A second Close gives errs.ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return fmt.Errorf("checkpoints in %s: %w", s.dir, errs.ErrClosed)
	}
	s.mu.closed = true
	closing := s.claimLocked()
	v := s.mu.kept
	s.mu.kept = nil
	s.mu.Unlock()
	if v == nil {
		return s.ended(context.Background(), closing)
	}
	return v.Close()
}

// clean removes temporary files and their directory, as far as it can: Open
// removes what is left.
func (s *Store) clean(paths []string) {
	for _, p := range paths {
		_ = s.o.FS.Remove(p)
	}
	_ = s.o.FS.Remove(s.tmp)
}

// existing gives the longest front of path that exists, and what is missing
// behind it, outermost first.
func existing(fsys vfs.FS, path string) (at string, missing []string) {
	for at = path; ; at = fsys.PathDir(at) {
		if _, err := fsys.Stat(at); err == nil || at == fsys.PathDir(at) {
			return at, missing
		}
		missing = append([]string{at}, missing...)
	}
}

// makeTemp makes the directory of temporary files. Those above it are there for
// good then; it itself may be lost in a crash, and what is in it with it.
func (s *Store) makeTemp() error {
	if err := makeDir(s.o.FS, s.o.FS.PathDir(s.tmp)); err != nil {
		return err
	}
	if err := s.o.FS.MkdirAll(s.tmp, 0o755); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	return nil
}

// makeDir makes a directory and those above it, and syncs what names them.
func makeDir(fsys vfs.FS, path string) error {
	at, missing := existing(fsys, path)
	if len(missing) == 0 {
		return nil
	}
	if err := fsys.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	for _, m := range missing {
		d, err := fsys.OpenDir(at)
		if err != nil {
			return fmt.Errorf("sync a directory: %w", err)
		}
		err = d.Sync()
		if cerr := d.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return fmt.Errorf("sync a directory: %w", err)
		}
		at = m
	}
	return nil
}
