package views

import (
	"cmp"
	"math/bits"
	"slices"
)

const (
	// A digit of the radix sort has at most so many bits: with more the places
	// that a pass writes to no longer stay in the cache.
	radixBits = 11
	// Above radixPasses moving wide rows once is faster than moving them often.
	radixPasses = 12
)

// sorting is scratch of a sort, so that one after the other allocates nothing.
type sorting struct {
	diff   []uint64
	passes []digitOf
	counts []int
}

// survey passes over the rows once. It returns the first column from which on
// the rows ascend by the rest of their columns (0: they are sorted; k: by none),
// and for each column the bits in which rows differ. Rows that were read from a
// trie in another order often ascend by their last columns.
func (r *rows) survey() (from int, diff []uint64) {
	k, stride := r.k, r.k+1
	diff = append(r.sorting.diff[:0], make([]uint64, k)...)
	r.sorting.diff = diff
	ascends := ^uint64(0)
	for i := stride; i < len(r.words); i += stride {
		a, b := r.words[i-stride:i], r.words[i:i+stride]
		up := true
		for c := k - 1; c >= 0; c-- {
			if x := a[c] ^ b[c]; x != 0 {
				diff[c] |= x
				up = a[c] < b[c]
			}
			if !up {
				ascends &^= 1 << min(c, 63)
			}
		}
	}
	for from < k && (from > 62 || ascends>>from&1 == 0) {
		from++
	}
	return from, diff
}

// digitOf is one pass of the radix sort: a range of bits of one column.
type digitOf struct {
	col   int
	shift uint
	mask  uint64
}

// digits lists the passes that sort rows which ascend by the columns from on
// already, least significant first. Bits in which no rows differ are left out. Few
// rows have small digits, since a pass looks at each value of one.
func (r *rows) digits(from int, diff []uint64) (passes []digitOf) {
	most := min(bits.Len(uint(r.Len())), radixBits)
	passes = r.sorting.passes[:0]
	for c := from - 1; c >= 0; c-- {
		if diff[c] == 0 {
			continue
		}
		low := bits.TrailingZeros64(diff[c])
		width := bits.Len64(diff[c]) - low
		parts := (width + most - 1) / most
		each := (width + parts - 1) / parts
		for p := range parts {
			passes = append(passes, digitOf{c, uint(low + p*each), 1<<each - 1})
		}
	}
	r.sorting.passes = passes
	return passes
}

// order sorts the rows, given what survey has found. The radix sort begins with
// the last column before those that ascend already.
func (r *rows) order(from int, diff []uint64) {
	passes := r.digits(from, diff)
	if len(passes) > radixPasses {
		r.permute()
		return
	}
	counts := r.count(passes)
	src, dst := r.words, r.roomToSort()
	for _, d := range passes {
		at := counts[:d.mask+1]
		counts = counts[d.mask+1:]
		sum := 0
		for i, n := range at {
			at[i] = sum
			sum += n * (r.k + 1)
		}
		scatter(dst, src, r.k+1, d, at)
		src, dst = dst, src
	}
	r.words, r.other = src, dst
}

// roomToSort is room for another copy of the rows.
func (r *rows) roomToSort() []uint64 {
	if cap(r.other) < len(r.words) {
		r.other = make([]uint64, cap(r.words))
	}
	return r.other[:len(r.words)]
}

// count counts the rows by the values of each digit, those of one pass after the
// other.
func (r *rows) count(passes []digitOf) []int {
	values := 0
	for _, d := range passes {
		values += int(d.mask) + 1
	}
	counts := append(r.sorting.counts[:0], make([]int, values)...)
	r.sorting.counts = counts
	for i := 0; i < len(r.words); i += r.k + 1 {
		row := r.words[i : i+r.k]
		from := 0
		for p := range passes {
			d := &passes[p]
			counts[from+int(row[d.col]>>d.shift&d.mask)]++
			from += int(d.mask) + 1
		}
	}
	return counts
}

// scatter moves each row to the place that its digit has next. Words are moved
// one by one, since arrays behind pointers are moved by a call.
func scatter(dst, src []uint64, stride int, d digitOf, at []int) {
	switch stride {
	case 2:
		for i := 0; i+2 <= len(src); i += 2 {
			row := (*[2]uint64)(src[i:])
			place := &at[row[0]>>d.shift&d.mask]
			to := (*[2]uint64)(dst[*place:])
			to[0], to[1] = row[0], row[1]
			*place += 2
		}
	case 3:
		for i := 0; i+3 <= len(src); i += 3 {
			row := (*[3]uint64)(src[i:])
			place := &at[row[d.col&1]>>d.shift&d.mask]
			to := (*[3]uint64)(dst[*place:])
			to[0], to[1], to[2] = row[0], row[1], row[2]
			*place += 3
		}
	case 4:
		for i := 0; i+4 <= len(src); i += 4 {
			row := (*[4]uint64)(src[i:])
			place := &at[row[d.col&3]>>d.shift&d.mask]
			to := (*[4]uint64)(dst[*place:])
			to[0], to[1], to[2], to[3] = row[0], row[1], row[2], row[3]
			*place += 4
		}
	default:
		for i := 0; i < len(src); i += stride {
			place := &at[src[i+d.col]>>d.shift&d.mask]
			copy(dst[*place:*place+stride], src[i:i+stride])
			*place += stride
		}
	}
}

// permute sorts the numbers of the rows by comparison and moves each row once.
func (r *rows) permute() {
	perm := make([]int, r.Len())
	for i := range perm {
		perm[i] = i
	}
	slices.SortFunc(perm, func(i, j int) int { return compareColumns(r.row(i)[:r.k], r.row(j)[:r.k]) })
	words := r.roomToSort()[:0]
	for _, i := range perm {
		words = append(words, r.row(i)...)
	}
	r.words, r.other = words, r.words
}

// compareColumns compares two tuples of the same length.
func compareColumns(a, b []uint64) int {
	for c, x := range a {
		if x != b[c] {
			return cmp.Compare(x, b[c])
		}
	}
	return 0
}
