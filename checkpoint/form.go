package checkpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/triegs/triegs/checkpoint/vault"
	"github.com/triegs/triegs/internal/errs"
)

// Form appends the bytes of one term of the newest checkpoint to dst. It may be
// called by any goroutine, also beside Commit: a term of the checkpoint before
// is found while the next one is let in. An id that is not there is ErrNoTerm.
// With KeepOpen it costs one seek, and the reading of a block of 32 KiB if that
// is not in memory; without, Pebble is opened for each call.
func (s *Store) Form(id uint64, dst []byte) ([]byte, error) {
	for {
		v, e, version, err := s.home(id)
		if err != nil {
			return dst, err
		}
		var out []byte
		if v == nil {
			out, err = s.formOnce(e.place, id, dst)
		} else {
			out, err = form(v, &e, id, dst)
		}
		if err == nil {
			return out, nil
		}
		s.mu.Lock()
		changed := s.mu.version != version || s.mu.kept != v
		s.mu.Unlock()
		if !changed {
			if errors.Is(err, errs.ErrCorrupt) {
				s.spoil(&e, err)
			}
			return dst, err
		}
	}
}

// formOnce opens the store for one term, while it is not open.
func (s *Store) formOnce(at place, id uint64, dst []byte) (out []byte, err error) {
	v, list, err := s.look(context.Background(), func(list []element) []element {
		if i := find(list, at); i >= 0 {
			return list[i : i+1]
		}
		return nil
	})
	if err != nil {
		return dst, err
	}
	if v == nil {
		return dst, fmt.Errorf("term %d: %w", id, ErrNoTerm)
	}
	i := find(list, at)
	if i < 0 {
		return dst, errors.Join(fmt.Errorf("term %d: %w", id, ErrNoTerm), v.Close())
	}
	out, err = form(v, &list[i], id, dst)
	if cerr := v.Close(); err == nil {
		err = cerr
	}
	return out, err
}

// home finds the element that a term must be in, and the vault if it is open.
func (s *Store) home(id uint64) (*vault.Vault, element, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, element{}, 0, fmt.Errorf("checkpoints in %s: %w", s.dir, errs.ErrClosed)
	}
	c := s.mu.newest
	i := sort.Search(len(c), func(i int) bool { return c[i].lastTerm >= id })
	if i == len(c) {
		if err := flaw(s.mu.elements); err != nil {
			return nil, element{}, 0, fmt.Errorf("term %d: %w", id, err)
		}
		return nil, element{}, 0, fmt.Errorf("term %d: %w", id, ErrNoTerm)
	}
	return s.mu.kept, c[i], s.mu.version, nil
}

// form reads one term from its element.
func form(v *vault.Vault, e *element, id uint64, dst []byte) (out []byte, err error) {
	it, err := v.Iter(e.bound(sectionTerms), e.bound(sectionTerms+1))
	if err != nil {
		return dst, err
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = cerr
		}
	}()
	if !it.SeekLT(e.key(nil, sectionTerms, id+1)) {
		if err := it.Err(); err != nil {
			return dst, err
		}
		return dst, fmt.Errorf("term %d: %w", id, ErrNoTerm)
	}
	p, err := it.Value()
	if err != nil {
		return dst, err
	}
	_, _, rest, ok := parseKey(it.Key())
	if !ok {
		return dst, e.corrupt("a key of %d bytes", len(it.Key()))
	}
	found := false
	_, _, err = walkBlock(binary.BigEndian.Uint64(rest), p, func(got uint64, form []byte) bool {
		if got == id {
			dst, found = append(dst, form...), true
		}
		return got < id
	})
	if err != nil {
		return dst, fmt.Errorf("%v in %s: %w", e.place, e.tables[len(e.tables)-1].Path, err)
	}
	if !found {
		return dst, fmt.Errorf("term %d: %w", id, ErrNoTerm)
	}
	return dst, nil
}
