package bench

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// Run says what to measure.
type Run struct {
	Workload  string    `json:"workload"`
	Contender Contender `json:"contender"`
	Updates   int       `json:"updates"` // an epoch; two for each slide
	Window    int       `json:"window"`  // edges
	Warm      int       `json:"warm"`    // slides before those that are measured
	Slides    int       `json:"slides"`  // slides that are measured
	Scale     float64   `json:"scale"`   // of the domains of the vertices
}

// Result is one measurement. Bytes are those that the contender added to the
// process, its stream not included.
type Result struct {
	Run
	Seconds        float64   `json:"seconds"`          // of the measured slides
	CPU            float64   `json:"cpu"`              // seconds of all threads in the same time
	PerSecond      float64   `json:"per_second"`       // updates
	PerCPU         float64   `json:"per_cpu"`          // updates a second of CPU time
	Heap           int64     `json:"heap"`             // spans in use after a collection
	Resident       int64     `json:"resident"`         // resident set after a collection
	Allocated      float64   `json:"allocated"`        // bytes an update
	Collections    int       `json:"collections"`      // of the heap, in the measured slides
	CollectShare   float64   `json:"collect_share"`    // of the CPU time of the measured slides
	CollectSeconds float64   `json:"collect_seconds"`  // CPU time of one collection at the end
	CollectLater   float64   `json:"collect_later"`    // share that follows from Allocated, see finish
	Writes         float64   `json:"writes"`           // view tuples an update
	WritesPerAlias float64   `json:"writes_per_alias"` // the same by atoms that an update feeds
	Woken          float64   `json:"woken"`            // tuples an update
	Answers        int64     `json:"answers"`
	Internals      Internals `json:"internals"`
}

// Measure runs a contender in this process. The number of answers at the end is
// compared with the reference.
func Measure(r Run) (*Result, error) {
	w, err := Find(r.Workload)
	if err != nil {
		return nil, err
	}
	if r.Updates < 2 || r.Updates%2 != 0 {
		return nil, fmt.Errorf("an epoch of %d updates: a slide is two", r.Updates)
	}
	s := w.Stream(r.Window, r.Warm+r.Slides, r.Scale)
	heap, resident := inUse()
	p, err := start(r.Contender, s)
	if err != nil {
		return nil, err
	}
	m := &measurement{Result: Result{Run: r}, s: s, p: p}
	err = errors.Join(m.run(), m.finish(heap, resident), p.close())
	runtime.KeepAlive(s)
	if err != nil {
		return nil, fmt.Errorf("%s by %s in epochs of %d: %w", r.Workload, r.Contender, r.Updates, err)
	}
	return &m.Result, nil
}

type measurement struct {
	Result
	s *Stream
	p program
}

// run loads the window and measures the slides.
func (m *measurement) run() error {
	if err := m.p.load(); err != nil {
		return err
	}
	runtime.GC() // brings the counters up to date; the warming up follows
	if err := m.slides(0, m.Warm); err != nil {
		return err
	}
	before, err := m.p.stats()
	if err != nil {
		return err
	}
	c0 := readCounters()
	t0 := time.Now()
	if err := m.slides(m.Warm, m.Warm+m.Slides); err != nil {
		return err
	}
	m.Seconds = time.Since(t0).Seconds()
	c1 := readCounters()
	after, err := m.p.stats()
	if err != nil {
		return err
	}
	n := float64(2 * m.Slides)
	m.CPU = c1.cpu - c0.cpu
	m.PerSecond, m.PerCPU = n/m.Seconds, n/m.CPU
	m.Allocated = float64(c1.allocated-c0.allocated) / n
	m.Collections = int(c1.collections - c0.collections)
	m.CollectShare = (c1.collecting - c0.collecting) / m.CPU
	m.Writes = float64(after.Writes-before.Writes) / n
	m.WritesPerAlias = m.Writes / m.s.AliasesPerUpdate()
	m.Woken = float64(after.Woken-before.Woken) / n
	m.Internals = after
	return nil
}

func (m *measurement) slides(from, to int) error {
	per := m.Updates / 2
	if m.Contender.byHand() {
		per = max(1, to-from) // it knows no epochs
	}
	for i := from; i < to; i += per {
		if err := m.p.slide(i, min(i+per, to)); err != nil {
			return err
		}
	}
	return nil
}

// finish measures the memory and checks the answers.
func (m *measurement) finish(heap, resident int64) error {
	if m.Seconds == 0 {
		return nil // run has failed
	}
	t := cpuSeconds()
	runtime.GC()
	m.CollectSeconds = cpuSeconds() - t
	h, r := inUse()
	m.Heap, m.Resident = h-heap, r-resident
	// A heap of this size is collected when as much again has been allocated,
	// which at a few bytes an update is later than any run that one waits for.
	updates := float64(h) / max(m.Allocated, 1e-9)
	m.CollectLater = m.CollectSeconds / (updates/m.PerCPU + m.CollectSeconds)
	var err error
	if m.Answers, err = m.p.answers(); err != nil {
		return err
	}
	if want := m.s.Answers(m.Warm + m.Slides); m.Answers != want {
		return fmt.Errorf("%d answers, the reference is %d", m.Answers, want)
	}
	return nil
}

// inUse is the memory of the process after everything that is not needed was
// given back.
func inUse() (heap, resident int64) {
	debug.FreeOSMemory()
	var st runtime.MemStats
	runtime.ReadMemStats(&st)
	return int64(st.HeapInuse), residentSet()
}

// residentSet is the resident set in bytes, 0 where the system does not tell.
func residentSet() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// counters are those of the process so far.
type counters struct {
	allocated, collections uint64
	collecting, cpu        float64 // seconds of CPU time
}

func readCounters() counters {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
	}
	metrics.Read(s)
	return counters{s[0].Value.Uint64(), s[1].Value.Uint64(), s[2].Value.Float64(), cpuSeconds()}
}
