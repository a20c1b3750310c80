package vault

import (
	"errors"
	"fmt"
	"time"

	"github.com/triegs/triegs/internal/errs"
)

// ErrStuck marks errors after which this process cannot open the directory for
// writing again: a call of Pebble never came back, and may still change it.
var ErrStuck = errors.New("pebble does not answer")

// Close waits for readers and for the call that is running, and closes the
// store, each under a deadline. A vault that does not close is given up: after
// a Fatalf its lock is taken away from it, else the error is ErrStuck. A second
// Close gives errs.ErrClosed.
func (v *Vault) Close() error {
	idle, err := v.beginClose()
	if err != nil {
		return err
	}
	timeout := v.o.Timeout
	if v.Err() != nil {
		timeout = min(timeout, timeoutPoisoned)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
		// Pebble panics when it is closed under an iterator.
		close(v.orphaned)
		return fmt.Errorf("close %s: readers did not end within %v: %w", v.dir, timeout, ErrStuck)
	}
	err = v.closeWithin(timer.C, timeout)
	if err == nil {
		v.fs.unpin()
	}
	if !errors.Is(err, ErrStuck) {
		v.fs.letGo()
	}
	return err
}

// beginClose stops new readers and gives a channel that is closed when the
// last of the others has gone.
func (v *Vault) beginClose() (<-chan struct{}, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.closing {
		return nil, fmt.Errorf("close %s: %w", v.dir, errs.ErrClosed)
	}
	v.mu.closing = true
	idle := make(chan struct{})
	if v.mu.readers == 0 {
		close(idle)
	} else {
		v.mu.idle = idle
	}
	return idle, nil
}

// closeWithin has the worker close the store, or, when Fatalf has ended the
// worker, a goroutine of its own.
func (v *Vault) closeWithin(deadline <-chan time.Time, timeout time.Duration) error {
	c := call{f: v.closeDB, done: make(chan error, 1), last: true}
	late := func() error {
		v.mu.Lock()
		fatal := v.mu.fatal
		v.mu.Unlock()
		if fatal {
			v.fs.shatter()
			return fmt.Errorf("close %s: given up after %v: %w", v.dir, timeout, v.Err())
		}
		return fmt.Errorf("close %s: no answer within %v: %w", v.dir, timeout, ErrStuck)
	}
	select {
	case v.calls <- c:
	case <-v.gone:
		go func() { c.done <- guard(c.f) }()
	case <-deadline:
		close(v.orphaned)
		return late()
	}
	select {
	case err := <-c.done:
		return err
	case <-v.gone:
		select {
		case err := <-c.done:
			return err
		case <-deadline:
			return late()
		}
	case <-deadline:
		return late()
	}
}

// closeDB closes the store if it was ever open.
func (v *Vault) closeDB() error {
	v.mu.Lock()
	db, readers := v.mu.db, v.mu.readers
	v.mu.Unlock()
	if db == nil {
		return nil
	}
	if readers > 0 {
		return errors.New("close under a reader")
	}
	return explain("close", v.dir, db.Close())
}
