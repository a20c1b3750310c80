package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/triegs/triegs/internal/errs"
)

// Vault is one open Pebble directory. Its methods may be called from several
// goroutines; changes queue up behind each other.
type Vault struct {
	dir string
	o   Options
	fs  *glass

	calls    chan call
	gone     chan struct{} // Closed when the worker has ended.
	orphaned chan struct{} // Closed when Close stopped waiting for the worker.
	poison   chan struct{} // Closed with the first sticky error.

	mu struct {
		sync.Mutex
		err     error // Sticky.
		fatal   bool  // Pebble called Fatalf, or panicked.
		db      *pebble.DB
		closing bool
		readers int
		idle    chan struct{} // Not nil while Close waits for readers.
	}
}

// call is one piece of work for the worker.
type call struct {
	f    func() error
	done chan error // Has room for the answer.
	last bool
}

// Open opens the store in dir. A writer creates what is missing and holds the
// directory's lock until Close. It takes about 15 ms on an existing directory
// (syncs of a new MANIFEST and OPTIONS), a reader about 2 ms.
//
// Missing and damaged tables are no error of Open; reading them is.
func Open(ctx context.Context, dir string, o Options) (*Vault, error) {
	o.fill()
	v := &Vault{
		dir:      dir,
		o:        o,
		fs:       &glass{FS: o.FS, readOnly: o.ReadOnly},
		calls:    make(chan call),
		gone:     make(chan struct{}),
		orphaned: make(chan struct{}),
		poison:   make(chan struct{}),
	}
	go v.work()
	err := v.run(ctx, "open", v.open)
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// open opens Pebble.
func (v *Vault) open() error {
	exists, err := Exists(v.o.FS, v.dir)
	if err == nil && !v.o.ReadOnly {
		err = wipe(v.o.FS, v.dir, exists)
	}
	if err != nil {
		return explain("open checkpoints", v.dir, err)
	}
	db, err := pebble.Open(v.dir, v.pebbleOptions())
	if err == nil && v.o.ReadOnly {
		if _, lerr := db.SSTables(); errors.Is(lerr, fs.ErrNotExist) {
			v.fs.phantoms = true
			if err = db.Close(); err == nil {
				db, err = pebble.Open(v.dir, v.pebbleOptions())
			}
		}
	}
	if err != nil {
		return explainOpen(v.dir, err)
	}
	v.mu.Lock()
	v.mu.db = db
	v.mu.Unlock()
	return nil
}

// work is the one goroutine that changes the store.
func (v *Vault) work() {
	defer close(v.gone)
	for {
		select {
		case c := <-v.calls:
			err := guard(c.f)
			if p := (panicked{}); errors.As(err, &p) {
				// Whatever locks it held are held for ever.
				v.mu.Lock()
				v.mu.fatal = true
				v.mu.Unlock()
				err = v.fail(explain("write checkpoints", v.dir, err))
			}
			c.done <- err
			if c.last {
				return
			}
		case <-v.orphaned:
			_ = guard(v.closeDB)
			return
		}
	}
}

// fail makes err the sticky error unless there is one.
func (v *Vault) fail(err error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.err == nil {
		v.mu.err = err
		close(v.poison)
	}
	return v.mu.err
}

// Err gives the sticky error: why this vault does nothing any more but close.
// It is nil as long as the vault is sound.
func (v *Vault) Err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mu.err
}

// run has the worker do f. A context that ends, or a deadline, while f runs
// makes the vault unusable: nobody knows whether f was done.
func (v *Vault) run(ctx context.Context, op string, f func() error) error {
	if err := v.Err(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", op, v.dir, context.Cause(ctx))
	}
	timer := time.NewTimer(v.o.Timeout)
	defer timer.Stop()
	c := call{f: f, done: make(chan error, 1)}
	select {
	case v.calls <- c:
	case <-v.poison:
		return v.Err()
	case <-v.gone:
		return fmt.Errorf("%s %s: %w", op, v.dir, errs.ErrClosed)
	case <-ctx.Done():
		return fmt.Errorf("%s %s: %w", op, v.dir, context.Cause(ctx))
	case <-timer.C:
		return v.fail(fmt.Errorf("%s %s: no answer within %v", op, v.dir, v.o.Timeout))
	}
	select {
	case err := <-c.done:
		return err
	case <-v.poison:
		return v.Err()
	case <-ctx.Done():
		return v.fail(fmt.Errorf("%s %s: given up while it ran: %w", op, v.dir, context.Cause(ctx)))
	case <-timer.C:
		return v.fail(fmt.Errorf("%s %s: no answer within %v", op, v.dir, v.o.Timeout))
	}
}

// Span is the keys from First up to but not including End.
type Span struct{ First, End []byte }

// Ingest lets the tables at paths in and, in the same step, drops all older
// keys of the span if there is one. The tables must have been written by
// [Create] in a directory of the same file system, and their keys must not
// overlap. On return it is durable and the files are gone; after an error the
// store is as it was, except when the vault is unusable afterwards ([Vault.Err]):
// then it may have been done or not, and reopening tells.
func (v *Vault) Ingest(ctx context.Context, paths []string, excise *Span) error {
	return v.run(ctx, "ingest into", func() error {
		// Pebble must not stop halfway because our caller has lost interest.
		ctx := context.WithoutCancel(ctx)
		if excise == nil {
			return explain("ingest into", v.dir, v.mu.db.Ingest(ctx, paths))
		}
		_, err := v.mu.db.IngestAndExcise(ctx, paths, nil, nil, pebble.KeyRange{Start: excise.First, End: excise.End})
		return explain("ingest into", v.dir, err)
	})
}

// Table describes one table of the store.
type Table struct {
	Path        string // Of the file.
	Bytes       int64  // That the file should have.
	First, Last []byte // Keys, both in the table.
	Whole       bool   // False if only a part of the file is used.
}

// Tables lists the tables by key. It reads no file. A writer's vault fails if
// a file is missing; a reader's goes on, and Stat tells.
func (v *Vault) Tables() ([]Table, error) {
	db, err := v.acquire()
	if err != nil {
		return nil, err
	}
	defer v.release()
	var list []Table
	err = guard(func() error {
		levels, err := db.SSTables()
		for _, level := range levels {
			for _, t := range level {
				list = append(list, Table{
					Path:  v.o.FS.PathJoin(v.dir, tableName(uint64(t.BackingSSTNum))),
					Bytes: int64(t.Size),
					First: bytes.Clone(t.Smallest.UserKey),
					Last:  bytes.Clone(t.Largest.UserKey),
					Whole: !t.Virtual,
				})
			}
		}
		return err
	})
	slices.SortFunc(list, func(a, b Table) int { return bytes.Compare(a.First, b.First) })
	return list, explain("list tables of", v.dir, err)
}

// Stat compares the file of a table with what the store says of it, without
// reading it. A missing file, or one of another size, is errs.ErrCorrupt.
func (v *Vault) Stat(t Table) error {
	info, err := v.fs.Stat(t.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w: the file is missing: %w", t.Path, errs.ErrCorrupt, err)
	case err != nil:
		return fmt.Errorf("look at %s: %w", t.Path, err)
	case t.Whole && info.Size() != t.Bytes:
		return fmt.Errorf("%s: %w: %d bytes long instead of %d", t.Path, errs.ErrCorrupt, info.Size(), t.Bytes)
	}
	return nil
}

// Pin opens the file of a table and holds it until Close, so that reading it
// works although a writer removes it. The vault must be read-only. It costs
// one file descriptor.
func (v *Vault) Pin(t Table) error {
	if _, err := v.acquire(); err != nil {
		return err
	}
	defer v.release()
	if err := v.fs.pin(t.Path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w: the file is missing: %w", t.Path, errs.ErrCorrupt, err)
		}
		return fmt.Errorf("open %s: %w", t.Path, err)
	}
	return nil
}

// acquire gives the store to a reader, who calls release when done with it.
func (v *Vault) acquire() (*pebble.DB, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.closing || v.mu.db == nil {
		return nil, fmt.Errorf("checkpoints in %s: %w", v.dir, errs.ErrClosed)
	}
	v.mu.readers++
	return v.mu.db, nil
}

// release ends what acquire began.
func (v *Vault) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mu.readers--
	if v.mu.readers == 0 && v.mu.idle != nil {
		close(v.mu.idle)
		v.mu.idle = nil
	}
}
