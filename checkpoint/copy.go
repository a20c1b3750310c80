package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/triegs/triegs/checkpoint/vault"
	"github.com/triegs/triegs/internal/errs"
)

// CopyTo makes the newest good checkpoint the newest one of dest, by one
// ingest; when it returns nil it is durable there. Later checkpoints of s may
// go on meanwhile. What is copied is checked against its counts and sums on
// the way. If dest ends with a checkpoint of the same chain, only the elements
// behind it are copied; else the whole chain is, and what dest had goes in the
// same step. A dest that holds another store is errs.ErrFormat. rate bounds
// the bytes written in a second, 0 does not.
//
// dest is open for writing, and nobody else writes to it. The checkpoint that
// was copied is returned.
func (s *Store) CopyTo(ctx context.Context, dest *Store, rate int64) (Info, error) {
	if dest.o.ReadOnly {
		return Info{}, fmt.Errorf("copy to %s: %w", dest.dir, errs.ErrReadOnly)
	}
	r, in, err := s.loadNewest(ctx)
	if err != nil {
		return Info{}, err
	}
	err = r.copyTo(ctx, dest, rate)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return in, err
}

// loadNewest opens the newest good checkpoint. Where that has been dropped before its
// files were held, by the second of two full ones that came meanwhile, there is a newer
// one.
func (s *Store) loadNewest(ctx context.Context) (*Reader, Info, error) {
	for gone := (*Info)(nil); ; {
		in, ok := s.newest()
		if !ok {
			return nil, Info{}, fmt.Errorf("copy from %s: no checkpoint", s.dir)
		}
		r, err := s.Load(ctx, in)
		if err == nil {
			return r, in, nil
		}
		if !errors.Is(err, errGone) || gone != nil && in.Sequence == gone.Sequence {
			return nil, Info{}, err
		}
		gone = &in
	}
}

// copyTo does the work of CopyTo with the files held open.
func (r *Reader) copyTo(ctx context.Context, dest *Store, rate int64) error {
	if err := dest.startWriting(ctx); err != nil {
		return err
	}
	c := &copying{r: r, dest: dest, pace: pace{rate: rate}}
	err := c.run(ctx)
	for _, t := range c.open {
		_ = t.Finish()
	}
	dest.clean(c.paths)
	dest.stopWriting()
	return err
}

// copying is one CopyTo.
type copying struct {
	r     *Reader
	dest  *Store
	pace  pace
	paths []string
	open  []*vault.TableWriter // At most one.
}

func (c *copying) run(ctx context.Context) error {
	if err := c.checkDest(ctx); err != nil {
		return err
	}
	c.dest.mu.Lock()
	have := prefixOf(c.dest.mu.elements, c.r.chain)
	c.dest.mu.Unlock()
	missing := c.r.chain[have:]
	if len(missing) == 0 {
		return nil
	}
	var need int64
	for _, e := range missing {
		need += e.bytes
	}
	if err := c.dest.space(need); err != nil {
		return err
	}
	if err := c.dest.makeTemp(); err != nil {
		return err
	}
	for i := have; i < len(c.r.chain); i++ {
		if err := c.element(ctx, i); err != nil {
			return err
		}
	}
	var excise *vault.Span
	if have == 0 {
		excise = &vault.Span{First: place{}.prefix(nil), End: keyspaceEnd}
	}
	last := &c.r.chain[len(c.r.chain)-1]
	return c.dest.letIn(ctx, c.paths, excise, func(list []element) bool {
		n := len(list)
		return n > 0 && list[n-1].place == last.place && list[n-1].sum == last.sum
	})
}

// keyspaceEnd is behind every key: a generation never gets that far.
var keyspaceEnd = []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// checkDest refuses a destination that holds another store.
func (c *copying) checkDest(ctx context.Context) error {
	d := c.dest
	in, ok := d.newest()
	if err := d.checkStore(&c.r.header); err != nil || !ok {
		return err
	}
	have, err := d.Load(ctx, in)
	if errors.Is(err, errs.ErrCorrupt) {
		return nil // It is replaced.
	}
	if err != nil {
		return err
	}
	if got, want := have.header.StoreID, c.r.header.StoreID; got != want {
		return errors.Join(fmt.Errorf("copy to %s: %w: it holds store %x, not %x", d.dir, errs.ErrFormat, got, want), have.Close())
	}
	return have.Close()
}

// prefixOf gives how many elements of chain list ends with, if it ends with
// the front of the chain and is sound; else 0.
func prefixOf(list, chain []element) int {
	n := len(list)
	if n == 0 {
		return 0
	}
	last := &list[n-1]
	if last.gen != chain[0].gen || int(last.el) >= len(chain) || chain[last.el].sum != last.sum {
		return 0
	}
	if newestGood(list, n-1) != n-1 {
		return 0
	}
	return int(last.el) + 1
}

// element copies the i-th element into one table and checks it.
func (c *copying) element(ctx context.Context, i int) error {
	path := c.dest.tempPath("copy")
	c.paths = append(c.paths, path)
	t, err := vault.Create(c.dest.o.FS, path)
	if err != nil {
		return err
	}
	c.open = append(c.open, t)
	if err := c.fill(ctx, i, t); err != nil {
		return err
	}
	c.open = nil
	return t.Finish()
}

// fill writes the pairs of the i-th element, which are in key order.
func (c *copying) fill(ctx context.Context, i int, t *vault.TableWriter) error {
	e := &c.r.chain[i]
	var got audit
	var key []byte
	var size int64
	put := func(section byte, n uint64, p []byte) error {
		key = e.key(key[:0], section, n)
		if err := t.Add(key, p); err != nil {
			return err
		}
		grown := t.Bytes() - size
		size += grown
		return c.pace.wait(ctx, grown)
	}
	if err := c.r.section(ctx, i, sectionFacts, func(n uint64, p []byte) error {
		got.chunk(p)
		return put(sectionFacts, n, p)
	}); err != nil {
		return err
	}
	if err := c.r.section(ctx, i, sectionTerms, func(first uint64, p []byte) error {
		n, _, err := walkBlock(first, p, func(uint64, []byte) bool { return true })
		if err != nil {
			return c.r.spoiled(e, fmt.Errorf("%v: %w", e.place, err))
		}
		got.block(first, n, p)
		return put(sectionTerms, first, p)
	}); err != nil {
		return err
	}
	tr, err := c.r.trailer(i)
	if err != nil {
		return err
	}
	for _, why := range []string{tr.agreesFacts(&got), tr.agreesTerms(&got)} {
		if why != "" {
			return c.r.spoiled(e, e.corrupt("%s", why))
		}
	}
	value := tr.appendTo(nil)
	if sumOf(value) != e.sum {
		return e.corrupt("the trailer does not encode as it was")
	}
	return t.Add(e.trailerKey(), value)
}
