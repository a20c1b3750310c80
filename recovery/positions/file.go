package positions

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/internal/errs"
)

// Name is the name of the file in the directory of a store.
const Name = "SUBSCRIBERS"

const (
	what = "the subscribers" // in the steps

	// rewriteMin is how large a file may be whatever is in it, and beyond that it may
	// be rewriteTimes as large as what it still says: then writing it anew costs an
	// acknowledgement in some thousand.
	rewriteMin   = 64 << 10
	rewriteTimes = 8
)

// Place is how far a named consumer has come.
type Place struct {
	// Query is what is told, by the name that it had and the epoch in which it was
	// registered.
	Query      string
	Registered uint64
	// Store and Timeline say of which history Epoch is: through it everything is
	// acknowledged, at the time Acked, in nanoseconds since 1970.
	Store, Timeline [16]byte
	Epoch           uint64
	Acked           int64
	// Each epoch is wanted by itself. Whole says that the whole answer is wanted and
	// was not acknowledged, so nothing before is. Lost says that what was kept for it
	// was given up.
	Each, Whole, Lost bool
}

// Options say how a File is opened.
type Options struct {
	ReadOnly bool
	// Step, if it is not nil, is called before each change of the directory, with what
	// is going to be done, and an error of it is that of the change. For tests.
	Step func(what string) error
}

// File is the places of a store. Its methods may be called from any goroutine.
type File struct {
	dir string
	o   Options

	mu     sync.Mutex
	places map[string]Place
	next   *batch // collects changes while another one is written

	turn sync.Mutex // held by who writes
	file *os.File   // to append to; nil: the next write is of a whole file
	size int        // of it
	over bool       // after Close
}

// batch are changes that are written together.
type batch struct {
	changes []change
	done    bool // guarded by turn, as err is
	err     error
}

// Open reads the places in the directory of a store; without a file there are none,
// and with dir "" they are in memory. Nothing is written. Damage is errs.ErrCorrupt,
// a later version errs.ErrFormat.
func Open(dir string, o Options) (*File, error) {
	if o.Step == nil {
		o.Step = func(string) error { return nil }
	}
	f := &File{dir: dir, o: o, places: map[string]Place{}, next: &batch{}}
	if dir == "" {
		return f, nil
	}
	path := filepath.Join(dir, Name)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return nil, err
	}
	f.places, _, err = decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Get gives the place of a name.
func (f *File) Get(name string) (Place, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.places[name]
	return p, ok
}

// All gives a copy of all places by name.
func (f *File) All() map[string]Place {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.places)
}

// Put makes p the place of a name. When it returns nil that is on stable storage;
// after an error it is what it was, as far as anybody is told before the next Open.
// Calls that come while another one is written are written together. Cost: one sync.
func (f *File) Put(name string, p Place) error {
	if len(name) > textMax || len(p.Query) > textMax {
		return fmt.Errorf("%w: a name of more than %d bytes", errs.ErrValue, textMax)
	}
	return f.apply(change{name: name, place: p})
}

// Forget takes a name away, as Put changes it.
func (f *File) Forget(name string) error { return f.apply(change{name: name, forget: true}) }

func (f *File) apply(c change) error {
	if f.o.ReadOnly {
		return fmt.Errorf("the subscribers in %s: %w", f.dir, errs.ErrReadOnly)
	}
	f.mu.Lock()
	b := f.next
	b.changes = append(b.changes, c)
	f.mu.Unlock()
	f.turn.Lock()
	defer f.turn.Unlock()
	if b.done { // by whoever had the turn meanwhile
		return b.err
	}
	f.mu.Lock()
	f.next = &batch{}
	after := maps.Clone(f.places)
	f.mu.Unlock()
	for _, c := range b.changes {
		if c.forget {
			delete(after, c.name)
		} else {
			after[c.name] = c.place
		}
	}
	b.done = true
	if f.over {
		b.err = errs.ErrClosed
		return b.err
	}
	if b.err = f.write(b.changes, after); b.err != nil {
		return b.err
	}
	f.mu.Lock()
	f.places = after
	f.mu.Unlock()
	return nil
}

// write makes changes durable, which lead to the places after. f.turn is held.
func (f *File) write(changes []change, after map[string]Place) (err error) {
	if f.dir == "" {
		return nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("writing the subscribers in %s: %w", f.dir, err), f.shut())
		}
	}()
	if f.file == nil {
		return f.renew(after)
	}
	var b []byte
	for i := range changes {
		b = appendChange(b, &changes[i])
	}
	if size := f.size + len(b); size > rewriteMin && size > rewriteTimes*len(encode(after)) {
		return errors.Join(f.shut(), f.renew(after))
	}
	if err := f.o.Step("append to " + what); err != nil {
		return err
	}
	if _, err := f.file.Write(b); err != nil {
		return err
	}
	f.size += len(b)
	if err := f.o.Step("sync " + what); err != nil {
		return err
	}
	return f.file.Sync()
}

// renew writes a file of places beside the old one, and puts it in its place.
func (f *File) renew(places map[string]Place) error {
	b := encode(places)
	if err := wal.Replace(f.dir, Name, b, what, f.o.Step); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(f.dir, Name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		// What was to be written is there; the next one begins anew.
		return nil //nolint:nilerr // it is durable
	}
	f.file, f.size = file, len(b)
	return nil
}

// Write puts places into the directory of another store, in the place of those that
// are there. Without any, and without a file, it does nothing.
func Write(dir string, places map[string]Place) error {
	if len(places) == 0 {
		if _, err := os.Stat(filepath.Join(dir, Name)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return wal.Replace(dir, Name, encode(places), what, func(string) error { return nil })
}

// shut closes the file that is appended to. f.turn is held.
func (f *File) shut() error {
	file := f.file
	f.file, f.size = nil, 0
	if file == nil {
		return nil
	}
	return file.Close()
}

// Close closes the file: a change behind it is errs.ErrClosed. Places can still be read.
func (f *File) Close() error {
	f.turn.Lock()
	defer f.turn.Unlock()
	f.over = true
	return f.shut()
}
