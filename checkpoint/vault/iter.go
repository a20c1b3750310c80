package vault

import (
	"github.com/cockroachdb/pebble/v2"
)

// Iter walks keys in order over the state at the time it was made. It counts
// as a reader until Close, and is for one goroutine. After a move that gave
// false, Err tells the end from a failure.
type Iter struct {
	v   *Vault
	it  *pebble.Iterator
	err error
}

// Iter makes an iterator over the keys from lower up to but not including
// upper.
func (v *Vault) Iter(lower, upper []byte) (*Iter, error) {
	db, err := v.acquire()
	if err != nil {
		return nil, err
	}
	i := &Iter{v: v}
	err = guard(func() (err error) {
		i.it, err = db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
		return err
	})
	if err != nil {
		v.release()
		return nil, explain("read", v.dir, err)
	}
	return i, nil
}

// move makes one step, and keeps a panic as the error.
func (i *Iter) move(step func() bool) (ok bool) {
	if i.err != nil {
		return false
	}
	defer func() {
		if r := recover(); r != nil {
			i.err = explain("read", i.v.dir, reason(r))
			ok = false
		}
	}()
	return step()
}

// SetBounds narrows or moves the iterator to other keys, of the same state.
func (i *Iter) SetBounds(lower, upper []byte) {
	i.move(func() bool { i.it.SetBounds(lower, upper); return true })
}

// First moves to the first key and tells whether there is one.
func (i *Iter) First() bool { return i.move(i.it.First) }

// Next moves to the next key and tells whether there is one.
func (i *Iter) Next() bool { return i.move(i.it.Next) }

// SeekLT moves to the last key before key and tells whether there is one.
func (i *Iter) SeekLT(key []byte) bool {
	return i.move(func() bool { return i.it.SeekLT(key) })
}

// Key gives the key, valid until the next move.
func (i *Iter) Key() []byte { return i.it.Key() }

// Value gives the value, valid until the next move.
func (i *Iter) Value() (value []byte, err error) {
	err = guard(func() error {
		value, err = i.it.ValueAndErr()
		return err
	})
	return value, explain("read", i.v.dir, err)
}

// Err gives what ended the walk before its end. It must be looked at after
// every scan: before a damaged block, Pebble hands out the good ones.
func (i *Iter) Err() error {
	if i.err != nil {
		return i.err
	}
	return explain("read", i.v.dir, i.it.Error())
}

// Close ends the iterator. It is called once.
func (i *Iter) Close() error {
	defer i.v.release()
	err := i.Err()
	if cerr := guard(i.it.Close); err == nil {
		err = explain("read", i.v.dir, cerr)
	}
	return err
}
