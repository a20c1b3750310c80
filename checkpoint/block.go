package checkpoint

import (
	"encoding/binary"
	"fmt"

	"github.com/triegs/triegs/internal/errs"
)

// blockTarget is the size at which a term block is closed. Small enough that
// looking one term up decodes little, large enough that a million terms are
// some thousands of keys.
const blockTarget = 8 << 10

// block packs terms for one value. Its key holds the first id; the value holds
// of each term the distance from the id before (0 for the first), the length
// and the bytes.
type block struct {
	first, last uint64
	terms       uint64
	p           []byte
}

// add appends a term; ids ascend.
func (b *block) add(id uint64, form []byte) {
	if len(b.p) == 0 {
		b.first, b.last = id, id
	}
	b.p = binary.AppendUvarint(b.p, id-b.last)
	b.p = binary.AppendUvarint(b.p, uint64(len(form)))
	b.p = append(b.p, form...)
	b.last = id
	b.terms++
}

// walkBlock gives the terms of a block in order, until visit says stop, and
// returns their number and the last id. Forms are valid during the call. A
// block that cannot be so is errs.ErrCorrupt.
func walkBlock(first uint64, p []byte, visit func(id uint64, form []byte) (more bool)) (n, last uint64, err error) {
	d := decoder{what: "term block", p: p}
	if len(p) == 0 {
		return 0, 0, fmt.Errorf("term block: %w: empty", errs.ErrCorrupt)
	}
	last = first
	for len(d.p) > 0 {
		delta := d.uvarint()
		form := d.take(d.uvarint())
		switch {
		case d.err != nil:
			return n, last, d.err
		case (delta == 0) != (n == 0) || last+delta < last:
			d.fail("ids do not ascend")
			return n, last, d.err
		}
		last += delta
		n++
		if !visit(last, form) {
			break
		}
	}
	return n, last, nil
}
