package views

import (
	"fmt"
	"math"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/semiring"
	"github.com/triegs/triegs/trie"
)

// track holds the state of an annotation for each tuple of a relation: a trie of
// the columns of the relation and both words of a component.
type track struct {
	algebra semiring.Algebra
	traits  semiring.Traits
	slot    int
	writes  int // components of states since sweep has looked
}

const stateColumns = 2 // of a component

// stateReader reads the state that a cursor goes over.
type stateReader struct {
	cursor *trie.Cursor
	at     int // column of the component
}

// Next implements [semiring.State].
func (r *stateReader) Next() bool { return r.cursor.Next() }

// Part implements [semiring.State].
func (r *stateReader) Part() semiring.Part {
	return semiring.Part{At: semiring.Component{High: r.cursor.Col(r.at), Low: r.cursor.Col(r.at + 1)}, N: r.cursor.Weight()}
}

// valueReader reads values off the states of tracks.
type valueReader struct {
	cursor trie.Cursor
	state  stateReader
}

// value appends the value of a track, whose trie stands at root, at a tuple of its
// relation.
func (r *valueReader) value(dst []uint64, space trie.Space, root uint64, t *track, tuple []uint64) ([]uint64, error) {
	r.cursor.Seek(space, root, len(tuple)+stateColumns, tuple)
	r.state = stateReader{&r.cursor, len(tuple)}
	return t.algebra.Collect(dst, &r.state)
}

// valueProduct multiplies values of one algebra: start, then times and ones for each
// factor, then end.
type valueProduct struct {
	algebra      semiring.Algebra
	traits       semiring.Traits
	words, other []uint64
	valued       bool  // words are the product of values so far
	count        int64 // of ones
}

func (p *valueProduct) start(a semiring.Algebra, traits semiring.Traits) {
	p.algebra, p.traits = a, traits
	p.words, p.valued, p.count = p.words[:0], false, 1
}

// times multiplies with a value.
func (p *valueProduct) times(value []uint64) (err error) {
	if !p.valued {
		p.words, p.valued = append(p.words, value...), true
		return nil
	}
	if p.other, err = p.algebra.Mul(p.other[:0], p.words, value); err != nil {
		return err
	}
	p.words, p.other = p.other, p.words
	return nil
}

// ones multiplies with the sum of n ones, for which an idempotent algebra needs no
// number.
func (p *valueProduct) ones(n int64) error {
	if p.traits.Idempotent {
		return nil
	}
	var ok bool
	if p.count, ok = mulOnes(p.count, n, p.traits); !ok {
		return fmt.Errorf("%w: the number of ones in a value of %s", errs.ErrOverflow, p.algebra.Name())
	}
	return nil
}

// end is the product, good until the next start.
func (p *valueProduct) end() ([]uint64, error) {
	if !p.valued {
		p.words = p.algebra.One(p.words)
	}
	if p.count == 1 {
		return p.words, nil
	}
	var err error
	p.other, err = p.algebra.Times(p.other[:0], p.words, p.count)
	p.words, p.other = p.other, p.words
	return p.words, err
}

// mulOnes multiplies numbers of ones in an algebra. Where values do not grow for
// ever, a sum of that many equal ones has stopped growing long before the number
// does not fit.
func mulOnes(a, b int64, traits semiring.Traits) (int64, bool) {
	product, ok := semiring.Mul(a, b)
	if !ok && traits.Chain > 0 {
		return math.MaxInt64, true
	}
	return product, ok
}
