package semiring

import (
	"github.com/triegs/triegs/internal/term"
)

// topK keeps the k greatest numbers of a sum, with repeats; a product has the k
// greatest sums of a number here and a number there. A value is a list of 1 to k
// numbers of two words, the greatest first.
//
// A state is the ordered multiset of the numbers, the greatest first.
type topK struct {
	name string
	k    int
}

func (k *topK) Name() string { return k.name }

func (k *topK) Traits() Traits {
	return Traits{Positive: true, Idempotent: false, State: "O(log n + k)"}
}

func (k *topK) One(dst []uint64) []uint64 {
	high, low := number{}.words()
	return append(dst, high, low)
}

func (k *topK) Lift(dst []uint64, _ uint64, t term.Term) ([]uint64, error) {
	n, err := liftNumber(t)
	if err != nil {
		return dst, err
	}
	high, low := n.words()
	return append(dst, high, low), nil
}

// Mul looks at the pairs only that can be among the k greatest: that of the i-th
// and the j-th number has i*j sums that are no smaller, itself among them. The
// cost is O(k log k) sums, and moving what is inserted.
func (k *topK) Mul(dst, a, b []uint64) ([]uint64, error) {
	start := len(dst)
	for i := 0; i < len(a); i += 2 {
		for j := 0; j < len(b) && (i/2+1)*(j/2+1) <= k.k; j += 2 {
			n, err := numberOf(a[i], a[i+1]).plus(numberOf(b[j], b[j+1]))
			if err != nil {
				return dst[:start], err
			}
			high, low := n.words()
			dst = k.insert(dst, start, high, low)
		}
	}
	return dst, nil
}

// insert puts a number into the list that begins at start, in its place.
func (k *topK) insert(dst []uint64, start int, high, low uint64) []uint64 {
	if (len(dst)-start)/2 < k.k {
		dst = append(dst, high, low)
	} else if end := len(dst); before(high, low, dst[end-2], dst[end-1]) {
		dst[end-2], dst[end-1] = high, low
	} else {
		return dst
	}
	for i := len(dst) - 2; i > start && before(high, low, dst[i-2], dst[i-1]); i -= 2 {
		dst[i], dst[i+1], dst[i-2], dst[i-1] = dst[i-2], dst[i-1], high, low
	}
	return dst
}

// before tells whether the first number is greater.
func before(high, low, otherHigh, otherLow uint64) bool {
	return high > otherHigh || high == otherHigh && low > otherLow
}

func (k *topK) Times(dst, a []uint64, n int64) ([]uint64, error) {
	room := k.k
	for i := 0; i < len(a) && room > 0; i += 2 {
		for range min(n, int64(room)) {
			dst = append(dst, a[i], a[i+1])
			room--
		}
	}
	return dst, nil
}

func (k *topK) Spread(dst []Part, a []uint64) []Part {
	start := len(dst)
	for i := 0; i < len(a); i += 2 {
		at := turned(Component{a[i], a[i+1]}, true)
		if last := len(dst) - 1; last >= start && dst[last].At == at {
			dst[last].N++
			continue
		}
		dst = append(dst, Part{at, 1})
	}
	return dst
}

func (k *topK) Collect(dst []uint64, s State) ([]uint64, error) {
	start := len(dst)
	room := k.k
	for room > 0 && s.Next() {
		p := s.Part()
		at := turned(p.At, true)
		for range min(p.N, int64(room)) {
			dst = append(dst, at.High, at.Low)
			room--
		}
	}
	if len(dst) == start {
		return dst, errEmpty
	}
	return dst, nil
}

// Export gives a []any of int64 and float64, in descending order.
func (k *topK) Export(a []uint64) any {
	list := make([]any, 0, len(a)/2)
	for i := 0; i < len(a); i += 2 {
		list = append(list, numberOf(a[i], a[i+1]).export())
	}
	return list
}
