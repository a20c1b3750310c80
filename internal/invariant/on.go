//go:build invariants || race

package invariant

import (
	"fmt"
	"math/rand/v2"
	"runtime"
)

// Enabled tells whether this build checks invariants.
const Enabled = true

// Check panics with the formatted text unless cond holds.
func Check(cond bool, format string, args ...any) {
	if !cond {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}

// Yield gives the processor away half of the time. It stands between any two
// steps of an epoch: on few cores a reader would hardly ever run between them
// otherwise, and a publication that comes too early would go unseen.
//
// The coin is the runtime's own generator, whose state is per thread: a shared
// one would be a lock between the very goroutines whose races are looked for.
func Yield() {
	if rand.Uint32()&1 == 0 {
		runtime.Gosched()
	}
}
