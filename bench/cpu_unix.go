//go:build linux || darwin

package bench

import "golang.org/x/sys/unix"

// cpuSeconds is the CPU time that all threads of the process have taken.
func cpuSeconds() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return float64(t.Sec) + float64(t.Nsec)/1e9
}
