//go:build !linux && !darwin

package bench

import "time"

var born = time.Now()

// cpuSeconds stands in with the time on the wall where the system does not tell
// the CPU time of the process finely.
func cpuSeconds() float64 { return time.Since(born).Seconds() }

// threadSeconds is the same.
func threadSeconds() float64 { return cpuSeconds() }
