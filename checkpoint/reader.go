package checkpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/triegs/triegs/checkpoint/vault"
	"github.com/triegs/triegs/internal/errs"
)

// Reader reads one checkpoint. It holds the files of its chain open, so that
// later checkpoints, in this process or another, may remove them. It is for
// one goroutine at a time, and must be closed.
type Reader struct {
	s        *Store
	v        *vault.Vault
	chain    []element
	trailers []trailer // Of chain; place is zero until it has been read.
	header   Header
	info     Info
}

// errGone is the error for a checkpoint that has been dropped.
var errGone = errors.New("is no longer there")

// Load opens a checkpoint that List gave. If it is no longer there the error
// is neither errs.ErrCorrupt nor errs.ErrFormat: Refresh and List again. Damage
// found here or while reading is errs.ErrCorrupt, names the file, and stays in
// List as Info.Err.
func (s *Store) Load(ctx context.Context, in Info) (*Reader, error) {
	at := place{in.Generation, uint32(in.Element)}
	v, list, err := s.look(ctx, func(list []element) []element {
		if i := find(list, at); i >= 0 {
			return chain(list, i)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	i := find(list, at)
	if i < 0 || list[i].sum != in.Sum {
		err := fmt.Errorf("checkpoint %v in %s %w", at, s.dir, errGone)
		if v != nil {
			err = errors.Join(err, v.Close())
		}
		return nil, err
	}
	r := &Reader{s: s, v: v, chain: chain(list, i), info: info(list, i)}
	r.trailers = make([]trailer, len(r.chain))
	if err := r.open(); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return r, nil
}

// open checks the chain as far as its last trailer.
func (r *Reader) open() error {
	for i := range r.chain {
		if err := r.chain[i].damage; err != nil {
			r.s.spoil(&r.chain[i], err)
			return err
		}
	}
	t, err := r.trailer(len(r.chain) - 1)
	if err != nil {
		return err
	}
	r.header = t.header
	return r.s.checkStore(&r.header)
}

// Header gives what the checkpoint binds. Its slices must not be changed.
func (r *Reader) Header() Header { return r.header }

// Info gives what List said of the checkpoint.
func (r *Reader) Info() Info { return r.info }

// trailer gives the trailer of the i-th element, which must name the one
// before as it is there.
func (r *Reader) trailer(i int) (*trailer, error) {
	t := &r.trailers[i]
	if t.gen == r.chain[i].gen {
		return t, nil
	}
	e := &r.chain[i]
	got, err := readTrailer(r.v, e)
	var prev uint64
	if i > 0 {
		prev = r.chain[i-1].sum
	}
	if err == nil && got.prev != prev {
		err = e.corrupt("it follows another element than the one before it")
	}
	if err != nil {
		return nil, r.spoiled(e, err)
	}
	*t = got
	return t, nil
}

// spoiled remembers damage of an element.
func (r *Reader) spoiled(e *element, err error) error {
	if errors.Is(err, errs.ErrCorrupt) {
		r.s.spoil(e, err)
	}
	return err
}

// corrupt says what is wrong with an element whose blocks are sound.
func (e *element) corrupt(why string, args ...any) error {
	path := "no file"
	if n := len(e.tables); n > 0 {
		path = e.tables[n-1].Path
	}
	return fmt.Errorf("%v in %s: %w: %s", e.place, path, errs.ErrCorrupt, fmt.Sprintf(why, args...))
}

// readTrailer reads and checks the trailer of an element against its key.
func readTrailer(v *vault.Vault, e *element) (t trailer, err error) {
	it, err := v.Iter(e.bound(sectionTrailer), e.after().prefix(nil))
	if err != nil {
		return t, err
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = cerr
		}
	}()
	if !it.First() {
		if err := it.Err(); err != nil {
			return t, err
		}
		return t, e.corrupt("no trailer")
	}
	value, err := it.Value()
	if err != nil {
		return t, err
	}
	t, err = decodeTrailer(value)
	if err != nil {
		return t, fmt.Errorf("%v in %s: %w", e.place, e.tables[len(e.tables)-1].Path, err)
	}
	h := &t.header
	switch {
	case string(it.Key()) != string(e.trailerKey()) || sumOf(value) != e.sum || t.place != e.place,
		h.Epoch != e.epoch, h.LogIndex != e.logIndex, h.LastTerm != e.lastTerm, h.Sequence != e.sequence:
		return t, e.corrupt("the trailer is of another element")
	case it.Next():
		return t, e.corrupt("two trailers")
	}
	return t, it.Err()
}

// Facts gives the chunks of facts: those of the newest element first, within
// an element in the order written. A record seen before is not to be taken
// again. chunk is valid during the call. What visit was given is right only if
// Facts returns nil; an error of visit ends the walk and is returned as it is.
func (r *Reader) Facts(ctx context.Context, visit func(chunk []byte) error) error {
	for i := len(r.chain) - 1; i >= 0; i-- {
		var got audit
		err := r.section(ctx, i, sectionFacts, func(n uint64, p []byte) error {
			if n != got.chunks {
				return r.spoiled(&r.chain[i], r.chain[i].corrupt("chunk %d is missing", got.chunks))
			}
			got.chunk(p)
			return visit(p)
		})
		if err != nil {
			return err
		}
		t, err := r.trailer(i)
		if err != nil {
			return err
		}
		if err := t.agreesFacts(&got); err != "" {
			return r.spoiled(&r.chain[i], r.chain[i].corrupt("%s", err))
		}
	}
	return nil
}

// Terms gives the terms by ascending id, over the whole chain. form is valid
// during the call. For the rest it is like Facts.
func (r *Reader) Terms(ctx context.Context, visit func(id uint64, form []byte) error) error {
	var last uint64
	var any bool
	for i := range r.chain {
		e := &r.chain[i]
		var got audit
		err := r.section(ctx, i, sectionTerms, func(first uint64, p []byte) error {
			if any && first <= last {
				return r.spoiled(e, e.corrupt("term %d after term %d", first, last))
			}
			var verr error
			n, end, err := walkBlock(first, p, func(id uint64, form []byte) bool {
				verr = visit(id, form)
				return verr == nil
			})
			if verr != nil {
				return verr
			}
			if err != nil {
				return r.spoiled(e, fmt.Errorf("%v in %s: %w", e.place, e.tables[len(e.tables)-1].Path, err))
			}
			got.block(first, n, p)
			last, any = end, true
			return nil
		})
		if err != nil {
			return err
		}
		t, err := r.trailer(i)
		if err != nil {
			return err
		}
		if err := t.agreesTerms(&got); err != "" {
			return r.spoiled(e, e.corrupt("%s", err))
		}
		if any && last > e.lastTerm {
			return r.spoiled(e, e.corrupt("term %d above the last term %d", last, e.lastTerm))
		}
	}
	return nil
}

// agreesFacts compares what was read with what was written.
func (t *trailer) agreesFacts(got *audit) string {
	if got.chunks != t.chunks || got.chunkBytes != t.chunkBytes || got.chunkSum != t.chunkSum {
		return fmt.Sprintf("%d chunks of facts (%d bytes, sum %016x) instead of %d (%d, %016x)",
			got.chunks, got.chunkBytes, got.chunkSum, t.chunks, t.chunkBytes, t.chunkSum)
	}
	return ""
}

// agreesTerms compares what was read with what was written.
func (t *trailer) agreesTerms(got *audit) string {
	if got.blocks != t.blocks || got.terms != t.terms || got.blockBytes != t.blockBytes || got.blockSum != t.blockSum {
		return fmt.Sprintf("%d terms in %d blocks (%d bytes, sum %016x) instead of %d in %d (%d, %016x)",
			got.terms, got.blocks, got.blockBytes, got.blockSum, t.terms, t.blocks, t.blockBytes, t.blockSum)
	}
	return ""
}

// section walks one section of the i-th element.
func (r *Reader) section(ctx context.Context, i int, section byte, visit func(n uint64, p []byte) error) (err error) {
	e := &r.chain[i]
	it, err := r.v.Iter(e.bound(section), e.bound(section+1))
	if err != nil {
		return err
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = r.spoiled(e, cerr)
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, _, rest, good := parseKey(it.Key())
		if !good {
			return r.spoiled(e, e.corrupt("a key of %d bytes", len(it.Key())))
		}
		p, err := it.Value()
		if err != nil {
			return r.spoiled(e, err)
		}
		if err := visit(binary.BigEndian.Uint64(rest), p); err != nil {
			return err
		}
	}
	return r.spoiled(e, it.Err())
}

// Close gives the files back. It is called once.
func (r *Reader) Close() error { return r.v.Close() }
