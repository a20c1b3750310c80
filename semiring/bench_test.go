package semiring

import (
	"slices"
	"testing"
)

// BenchmarkMove is what one tuple costs whose value changes: a product, two vectors
// and a value read off the state.
func BenchmarkMove(b *testing.B) {
	for _, s := range slices.Concat(subjects(), columns()) {
		b.Run(s.spec, func(b *testing.B) {
			k, err := Parse(s.spec, Env{Terms: dictionary(s.values), Extra: s.extra})
			if err != nil {
				b.Fatal(err)
			}
			var values [][]uint64
			state := &bag{}
			for i, v := range s.values {
				a, err := k.Lift(nil, uint64(i+1), v)
				if err != nil {
					b.Fatal(err)
				}
				values = append(values, a)
				state.add(k.Spread(nil, a), 1)
			}
			one := k.One(nil)
			dst, parts := make([]uint64, 0, 256), make([]Part, 0, 256)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				a := values[i%len(values)]
				product, err := k.Mul(dst, a, one)
				if err != nil {
					b.Fatal(err)
				}
				k.Spread(k.Spread(parts, a), product)
				state.next = 0
				if _, err = k.Collect(dst, state); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
