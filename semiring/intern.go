package semiring

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/triegs/triegs/internal/term"
)

// Sweeper is an Algebra whose words stand for things that it holds on to: sets of
// tokens, monomials, terms. It forgets those that are in no state any more when it
// is told to.
type Sweeper interface {
	Algebra
	// Size is the number of things that the algebra holds.
	Size() int
	// Sweep forgets things. It calls live once, which calls mark with the Low of
	// each component of each state that may still be read; marking one twice is
	// harmless. What has been made (or made again) since the last Sweep began is
	// kept as well, so that a value that is not in a state yet, or will be in none,
	// is good until the next Sweep but one after the call that appended it. A word is
	// never used for another thing.
	//
	// Other methods may be called meanwhile, save Sweep.
	Sweep(live func(mark func(word uint64)))
}

// Sized is an Algebra whose values may be of any length.
type Sized interface {
	Algebra
	// Len is the number of parts of a value: witnesses, monomials.
	Len(a []uint64) int
}

// table gives numbers to things, from 1, and takes them back in rounds.
type table[K comparable, V any] struct {
	mu    sync.RWMutex
	byKey map[K]*entry[K, V]
	byID  map[uint64]*entry[K, V]
	last  uint64
	most  int // entries since the maps were made
	round atomic.Uint64
}

type entry[K comparable, V any] struct {
	id    uint64
	key   K
	value V
	used  atomic.Uint64 // the round in which the entry was asked for last
}

// get finds a thing by its number; ok is false for one that was swept.
func (t *table[K, V]) get(id uint64) (v V, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	e, ok := t.byID[id]
	if !ok {
		return v, false
	}
	return e.value, true
}

// find gives the number of a thing that is there, and keeps it for this round and
// the next.
func (t *table[K, V]) find(key K) (id uint64, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	e, ok := t.byKey[key]
	if !ok {
		return 0, false
	}
	e.used.Store(t.round.Load())
	return e.id, true
}

// put gives the number of a thing, a new one if it has none.
func (t *table[K, V]) put(key K, value V) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.byKey[key]
	if !ok {
		if t.byKey == nil {
			t.byKey, t.byID = map[K]*entry[K, V]{}, map[uint64]*entry[K, V]{}
		}
		t.last++
		e = &entry[K, V]{id: t.last, key: key, value: value}
		t.byKey[key], t.byID[e.id] = e, e
		t.most = max(t.most, len(t.byID))
	}
	e.used.Store(t.round.Load())
	return e.id
}

func (t *table[K, V]) size() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.byID)
}

// advance begins a round of sweeping.
func (t *table[K, V]) advance() { t.round.Add(1) }

// sweep ends a round: it drops what is neither marked nor was used in this round
// or the one before, and calls kept with the values that remain.
func (t *table[K, V]) sweep(marked map[uint64]struct{}, kept func(V)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, e := range t.byID {
		if _, ok := marked[id]; !ok && e.used.Load()+1 < t.round.Load() {
			delete(t.byID, id)
			delete(t.byKey, e.key)
			continue
		}
		if kept != nil {
			kept(e.value)
		}
	}
	t.shrink()
}

// shrink makes maps of what is left that take no more room than it, where they have
// become far too large. A map does not do that itself.
func (t *table[K, V]) shrink() {
	n := len(t.byID)
	if t.most = max(t.most, n); n >= t.most/4 {
		return
	}
	byKey, byID := make(map[K]*entry[K, V], n), make(map[uint64]*entry[K, V], n)
	for id, e := range t.byID {
		byKey[e.key], byID[id] = e, e
	}
	t.byKey, t.byID, t.most = byKey, byID, n
}

// tokens numbers terms.
type tokens struct {
	table[term.Term, term.Term]
}

func (t *tokens) id(of term.Term) uint64 {
	if id, ok := t.find(of); ok {
		return id
	}
	return t.put(of, of)
}

// lists numbers lists of tokens, whose terms it holds. The empty list has number 0
// and is not in the table.
type lists struct {
	table  table[string, []uint64]
	tokens tokens
}

// id numbers a list, which is copied.
func (l *lists) id(list []uint64) uint64 {
	if len(list) == 0 {
		return 0
	}
	var buf [128]byte
	key := buf[:0]
	for _, w := range list {
		key = binary.LittleEndian.AppendUint64(key, w)
	}
	if id, ok := l.find(key); ok {
		return id
	}
	return l.table.put(string(key), append([]uint64(nil), list...))
}

// find is that of the table, without making a string.
func (l *lists) find(key []byte) (id uint64, ok bool) {
	l.table.mu.RLock()
	defer l.table.mu.RUnlock()
	e, ok := l.table.byKey[string(key)]
	if !ok {
		return 0, false
	}
	e.used.Store(l.table.round.Load())
	return e.id, true
}

// get gives a list that is not to be changed, nil for the empty one.
func (l *lists) get(id uint64) []uint64 {
	list, _ := l.table.get(id)
	return list
}

// Size counts lists and tokens.
func (l *lists) Size() int { return l.table.size() + l.tokens.size() }

// Sweep is that of Sweeper; lists that stay keep their tokens.
func (l *lists) Sweep(live func(mark func(word uint64))) {
	l.table.advance()
	l.tokens.advance()
	marked := map[uint64]struct{}{}
	live(func(word uint64) { marked[word] = struct{}{} })
	kept := map[uint64]struct{}{}
	l.table.sweep(marked, func(list []uint64) {
		for _, token := range list {
			kept[token] = struct{}{}
		}
	})
	l.tokens.sweep(kept, nil)
}

// text is a token as it is shown: a plain string as it is, any other term in
// N-Triples syntax.
func (l *lists) text(token uint64) string {
	t, _ := l.tokens.get(token)
	if t.Kind() == term.KindString {
		return t.Lexical()
	}
	return t.String()
}
