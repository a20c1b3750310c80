package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/triegs/triegs"
)

// slidesPerAppend makes epochs of 200 updates.
const slidesPerAppend = 100

// appends measures epochs, and a reader beside them, alone or as long as a full
// checkpoint takes.
func (d durable) appends(dir string, mode triegs.SyncMode, beside bool) (figures []Figure, err error) {
	d.slides = max(4*d.edges/10, 4*slidesPerAppend)
	s := d.stream()
	dir = filepath.Join(dir, fmt.Sprint(beside))
	db, err := d.fresh(dir, manual(mode))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close(), os.RemoveAll(dir)) }()
	b := &byAPI{s: s, db: db}
	if err := b.load(); err != nil {
		return nil, err
	}
	runtime.GC()
	r := &reader{db: db, query: s.Name, results: make(chan []time.Duration, 1)}
	go r.run(make([]time.Duration, 0, 1<<20))
	x := &appending{b: b, end: func(took time.Duration) bool { return took > 3*time.Second }}
	saved := make(chan error, 1)
	if beside {
		x.end = func(time.Duration) bool { return len(saved) > 0 }
		go func() { saved <- db.Checkpoint(context.Background()) }()
	} else {
		saved <- nil
	}
	err = errors.Join(x.run(), <-saved)
	delays := r.stop()
	if err != nil {
		return nil, err
	}
	figures = append(figures,
		Figure{"append p50", quantile(x.took, .5), "µs"},
		Figure{"append p99", quantile(x.took, .99), "µs"},
		Figure{"append most", quantile(x.took, 1), "µs"},
		Figure{"updates a second", float64(2*x.slides) / x.whole.Seconds(), "a second"},
		Figure{"read p50", quantile(delays, .5), "µs"},
		Figure{"read p99", quantile(delays, .99), "µs"},
		Figure{"read most", quantile(delays, 1), "µs"},
		Figure{"seconds", x.whole.Seconds(), ""},
	)
	return figures, expected{Answers: s.Answers(x.slides)}.check(db)
}

// appending appends epochs until it is told to end, or the stream ends.
type appending struct {
	b      *byAPI
	end    func(took time.Duration) bool
	took   []time.Duration // by epoch
	slides int
	whole  time.Duration
}

func (x *appending) run() error {
	start := time.Now()
	for x.slides+slidesPerAppend <= x.b.s.Slides() && !x.end(x.whole) {
		t := time.Now()
		if err := x.b.slide(x.slides, x.slides+slidesPerAppend); err != nil {
			return err
		}
		x.took = append(x.took, time.Since(t))
		x.slides += slidesPerAppend
		x.whole = time.Since(start)
	}
	return nil
}

// reader takes snapshots and reads the first answers of each, with a rest in
// between, so that the writer has a core.
type reader struct {
	db      *triegs.DB
	query   string
	ended   atomic.Bool
	results chan []time.Duration
}

const readAnswers = 100

func (r *reader) run(took []time.Duration) {
	for !r.ended.Load() {
		t := time.Now()
		if !r.read() {
			break
		}
		took = append(took, time.Since(t))
		time.Sleep(2 * time.Millisecond)
	}
	r.results <- took
}

func (r *reader) read() bool {
	snap, err := r.db.Snapshot()
	if err != nil {
		return false
	}
	defer snap.Close()
	n := 0
	for _, err := range snap.Answers(r.query) {
		if n++; err != nil || n == readAnswers {
			break
		}
	}
	return true
}

func (r *reader) stop() []time.Duration {
	r.ended.Store(true)
	return <-r.results
}

// quantile of times in microseconds.
func quantile(took []time.Duration, q float64) float64 {
	if len(took) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(took))
	return float64(s[min(int(q*float64(len(s))), len(s)-1)]) / 1e3
}

// many takes a thousand checkpoints of a store of constant size, or fewer of a
// smaller one.
func (d durable) many(dir string) (figures []Figure, err error) {
	times := max(min(d.edges/1000, 1000), 20)
	d.edges = max(d.edges/25, 1000)
	each := d.edges / 100
	d.slides = times * each
	s := d.stream()
	db, err := d.fresh(dir, manual(triegs.SyncNone))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	b := &byAPI{s: s, db: db}
	if err := b.load(); err != nil {
		return nil, err
	}
	var one, most, log int64
	var handles, goroutines [2]int
	began := time.Now()
	for i := range times {
		if err := db.Checkpoint(context.Background()); err != nil {
			return nil, err
		}
		checkpoints, rest := diskUse(storePath(dir))
		if i == 0 {
			one, handles[0], goroutines[0] = checkpoints, openHandles(), runtime.NumGoroutine()
		}
		most, log = max(most, checkpoints), max(log, rest)
		if err := b.slide(i*each, (i+1)*each); err != nil {
			return nil, err
		}
	}
	took := time.Since(began)
	handles[1], goroutines[1] = openHandles(), runtime.NumGoroutine()
	c := db.Metrics().Checkpoints
	return []Figure{
		{"one, MB", float64(one) / mega, ""},
		{"most, MB", float64(most) / mega, ""},
		{"most by one", float64(most) / float64(one), ""},
		{"log at most, MB", float64(log) / mega, ""},
		{"full", float64(c.Full), ""},
		{"ms each", took.Seconds() * 1e3 / float64(times), ""},
		{"handles after the first", float64(handles[0]), ""},
		{"handles at the end", float64(handles[1]), ""},
		{"goroutines after the first", float64(goroutines[0]), ""},
		{"goroutines at the end", float64(goroutines[1]), ""},
	}, expected{Answers: s.Answers(d.slides)}.check(db)
}

// diskUse adds up the files of a store: those of checkpoints, and the rest.
func diskUse(dir string) (checkpoints, rest int64) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerror // files may go while they are counted
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerror // likewise
		}
		if rel, _ := filepath.Rel(dir, path); strings.HasPrefix(rel, "checkpoint") {
			checkpoints += info.Size()
		} else {
			rest += info.Size()
		}
		return nil
	})
	return checkpoints, rest
}

// small opens and closes a store of a thousand edges that was closed cleanly.
func (d durable) small(dir string) ([]Figure, error) {
	d.edges, d.slides = 1000, 0
	s := d.stream()
	db, err := d.fresh(dir, nil)
	if err != nil {
		return nil, err
	}
	err = (&byAPI{s: s, db: db}).load()
	if err == nil {
		err = db.Checkpoint(context.Background())
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	var opens, closes []time.Duration
	heap0, _ := inUse()
	goroutines, handles := runtime.NumGoroutine(), openHandles()
	var idle []Figure
	for range 20 {
		t := time.Now()
		db, err := triegs.Open(storePath(dir), nil)
		if err != nil {
			return nil, err
		}
		opens = append(opens, time.Since(t))
		if idle == nil {
			heap, _ := inUse()
			idle = []Figure{
				{"goroutines", float64(runtime.NumGoroutine() - goroutines), ""},
				{"handles", float64(openHandles() - handles), ""},
				{"heap MB", float64(heap-heap0) / mega, ""},
			}
		}
		t = time.Now()
		if err := errors.Join(expected{Answers: s.Answers(0)}.check(db), db.Close()); err != nil {
			return nil, err
		}
		closes = append(closes, time.Since(t))
	}
	return append([]Figure{
		{"open p50", quantile(opens, .5), "µs"},
		{"open most", quantile(opens, 1), "µs"},
		{"close p50", quantile(closes, .5), "µs"},
	}, idle...), nil
}
