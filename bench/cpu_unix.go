//go:build linux || darwin

package bench

import "golang.org/x/sys/unix"

// cpuSeconds is the CPU time that all threads of the process have taken.
func cpuSeconds() float64 { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// threadSeconds is the CPU time of the calling thread, which a goroutine has to itself
// that is locked to it.
func threadSeconds() float64 { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

func clock(id int32) float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		return 0
	}
	return float64(t.Sec) + float64(t.Nsec)/1e9
}
