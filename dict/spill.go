package dict

import (
	"fmt"
	"math"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/dgraph-io/ristretto/v2"

	"github.com/triegs/triegs/internal/errs"
)

// Backing reads the stored forms of terms that are not in memory. It is called
// from any goroutine, by several at a time.
type Backing interface {
	// Form appends the stored form of the term of an id to dst.
	Form(id uint64, dst []byte) ([]byte, error)
}

// store is where the forms are that have left memory: a backing, and a cache in
// front of it. A nil store has none.
type store struct {
	backing Backing
	cache   *cache
}

// cache keeps forms that were read. Its library may drop what is added, but
// gives back nothing else; all the same a hit counts for nothing before its
// content hash has been compared.
type cache struct {
	// mu keeps the library's Close apart from its other calls, which do not
	// stand it.
	mu     sync.RWMutex
	forms  *ristretto.Cache[uint64, cached]
	closed bool
}

// cached is a form behind the byte that its content hash begins with.
type cached struct {
	id     uint64
	tagged []byte
}

// cachedBytes is what an entry of the cache costs beside its form.
const cachedBytes = 224

func newCache(size int64) (*cache, error) {
	forms, err := ristretto.NewCache(&ristretto.Config[uint64, cached]{
		// Ten counters for each form of middling length, at 5 bytes each.
		NumCounters:        max(size/32, 1024),
		MaxCost:            size,
		BufferItems:        64,
		IgnoreInternalCost: true,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: dictionary cache of %d bytes: %w", errs.ErrValue, size, err)
	}
	return &cache{forms: forms}, nil
}

// get returns what the cache has for an id, if its content hash is a.
func (c *cache) get(id, a uint64) (tagged []byte, ok bool) {
	if c == nil {
		return nil, false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return nil, false
	}
	x, ok := c.forms.Get(id)
	return x.tagged, ok && x.id == id && xxhash.Sum64(x.tagged) == a
}

func (c *cache) put(id uint64, tagged []byte) {
	if c == nil {
		return
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.closed {
		c.forms.Set(id, cached{id, tagged}, int64(cap(tagged))+cachedBytes)
	}
}

func (c *cache) close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.forms.Close()
	}
}

// gone reports whether there is no cache any more.
func (c *cache) gone() bool {
	if c == nil {
		return true
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.closed
}

func (c *cache) resize(size int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.closed {
		c.forms.UpdateMaxCost(size)
	}
}

// bytes is the memory of the cached forms and of the counters.
func (s *store) bytes() int64 {
	if s == nil || s.cache == nil {
		return 0
	}
	s.cache.mu.RLock()
	defer s.cache.mu.RUnlock()
	if s.cache.closed {
		return 0
	}
	size := s.cache.forms.MaxCost()
	return size - s.cache.forms.RemainingCost() + size*5/32
}

// load reads the form of a long entry into dst behind one byte, and proves that
// it is the right one by both content hashes.
func (s *store) load(id uint64, e *entry, dst []byte) (tagged []byte, err error) {
	tagged, err = s.backing.Form(id, append(dst, tagA))
	if err != nil {
		return nil, fmt.Errorf("reading the text of term %d: %w", id, err)
	}
	if len(tagged) != 1+e.size() || xxhash.Sum64(tagged) != e.word(2) || laneB(tagged[1:]) != e.word(3) {
		return nil, fmt.Errorf("%w: the text of term %d is not the one that was stored", errs.ErrCorrupt, id)
	}
	return tagged, nil
}

// read returns the form of a long entry that is not in memory.
func (d *Dict) read(st *state, id uint64, e *entry) (form []byte, ok bool) {
	if tagged, ok := st.store.cache.get(id, e.word(2)); ok {
		return tagged[1:], true
	}
	tagged, err := st.store.load(id, e, make([]byte, 0, 1+e.size()))
	if err != nil {
		// A reader that is late may come upon a term that has been swept, and
		// whose text is deleted. It looks for another one.
		if d.Has(id) {
			d.fail(err)
		}
		return nil, false
	}
	st.store.cache.put(id, tagged)
	return tagged[1:], true
}

func (d *Dict) fail(err error) {
	d.err.CompareAndSwap(nil, &err)
	d.fault.Add(1)
}

// Faults counts how often the text of a term could not be read. Where it is the
// same before and after some calls, none of them lacks a term for that reason;
// where it is not, one of them may, or another goroutine's. It costs a load.
func (d *Dict) Faults() uint64 { return d.fault.Load() }

// Since is nil if Faults is still what it was, else an error of reading a text.
func (d *Dict) Since(faults uint64) error {
	if d.Faults() == faults {
		return nil
	}
	return d.Err()
}

// Err is the first error of reading the text of a term, nil if there was none.
func (d *Dict) Err() error {
	if p := d.err.Load(); p != nil {
		return *p
	}
	return nil
}

// Spill says that the backing has the forms of all held terms up to an id from
// now on, until they are swept. The texts of long forms up to there leave the
// memory and are read when they are needed, through a cache of at most
// cacheBytes; 0 means no cache, and less than 0 that all stays in memory. It may
// be called again, with a greater id, another backing or another size; an id
// below that of an earlier call is raised to it. While terms are being restored
// the id may be above the last one: it holds for those to come.
//
// Readers may go on, also with the backing of an earlier call until they are
// done with the term they are reading.
func (d *Dict) Spill(through uint64, b Backing, cacheBytes int64) error {
	if cacheBytes < 0 {
		return nil
	}
	ed := d.edit()
	st := &ed.st
	c := (*cache)(nil)
	if st.store != nil {
		c = st.store.cache
	}
	if cacheBytes > 0 && c.gone() {
		var err error
		if c, err = newCache(cacheBytes); err != nil {
			return err
		}
	} else if cacheBytes > 0 {
		c.resize(cacheBytes)
	} else {
		c.close()
		c = nil
	}
	st.store = &store{b, c}
	if through > ed.d.n.Load() {
		ed.d.startLoading()
	}
	if before := st.through; through > before {
		ed.spill(before+1, through)
		st.through = through
		ed.compact()
	}
	ed.publish()
	return nil
}

// spill lets go of the slabs with no ids above through, and takes the bytes of
// the others up to there out of their accounts.
func (ed *edit) spill(from, through uint64) {
	s := &ed.d.slabs
	low, high := uint64(math.MaxUint64), uint64(0)
	for i := range s.info {
		x := &s.info[i]
		switch {
		case ed.st.slabs[i] == nil:
		case x.last <= through:
			x.live = 0
		default:
			low, high = min(low, x.first), max(high, min(x.last, through))
		}
	}
	if low <= high {
		ed.st.walk(max(low, from), high, func(id uint64, e *entry) bool {
			if e.long() {
				if x := &s.info[e.word(1)>>32]; x.last > through {
					x.live -= e.size()
				}
			}
			return true
		})
	}
}

// Close ends the goroutines of the cache. Reads go past it from here on.
func (d *Dict) Close() {
	if st := d.state.Load(); st.store != nil {
		st.store.cache.close()
	}
}
