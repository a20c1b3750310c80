package bench

import (
	"context"
	"errors"
	"io/fs"
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

// appends measures epochs, and a reader beside them: as long as a full
// checkpoint takes, and about as long in all before it and behind it.
func (d durable) appends(dir string, mode triegs.SyncMode) (figures []Figure, err error) {
	d.slides = max(d.edges/2, 8*slidesPerAppend)
	s := d.stream()
	db, err := d.fresh(dir, manual(mode))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	b := &byAPI{s: s, db: db}
	if err := b.load(); err != nil {
		return nil, err
	}
	runtime.GC()
	var alone, beside appending
	const aside = 1500 * time.Millisecond
	if err := alone.run(b, 0, s.Slides()/4, func(took time.Duration) bool { return took > aside }); err != nil {
		return nil, err
	}
	saved := make(chan error, 1)
	go func() { saved <- db.Checkpoint(context.Background()) }()
	err = beside.run(b, alone.slides, s.Slides()*3/4, func(time.Duration) bool { return len(saved) > 0 })
	if err := errors.Join(err, <-saved); err != nil {
		return nil, err
	}
	done := alone.slides + beside.slides
	if err := alone.run(b, done, s.Slides(), func(took time.Duration) bool { return took > aside }); err != nil {
		return nil, err
	}
	for _, q := range []struct {
		name string
		of   float64
	}{{"append p50", .5}, {"append p99", .99}, {"append p99.9", .999}} {
		figures = append(figures, ratio(q.name+" ms", quantile(alone.took, q.of)/1e3, quantile(beside.took, q.of)/1e3)...)
	}
	figures = append(figures, ratio("read p99 ms", quantile(alone.reads, .99)/1e3, quantile(beside.reads, .99)/1e3)...)
	figures = append(figures, ratio("updates a second", alone.perSecond(), beside.perSecond())...)
	figures = append(figures, Figure{"seconds", beside.whole.Seconds(), ""})
	return figures, expected{Answers: s.Answers(alone.slides + beside.slides)}.check(db)
}

// ratio is a figure without a checkpoint, with one, and how they compare.
func ratio(name string, alone, beside float64) []Figure {
	return []Figure{{name, alone, ""}, {name + " beside", beside, ""}, {name + " times", beside / max(alone, 1e-9), ""}}
}

// appending appends epochs until it is told to end, with a reader beside it.
type appending struct {
	took   []time.Duration // by epoch
	reads  []time.Duration
	slides int
	whole  time.Duration
}

func (x *appending) run(b *byAPI, from, to int, end func(took time.Duration) bool) error {
	r := &reader{db: b.db, query: b.s.Name, results: make(chan []time.Duration, 1)}
	go r.run()
	start := time.Now()
	for ; from+slidesPerAppend <= to && !end(time.Since(start)); from += slidesPerAppend {
		t := time.Now()
		if err := b.slide(from, from+slidesPerAppend); err != nil {
			r.stop()
			return err
		}
		x.took = append(x.took, time.Since(t))
		x.slides += slidesPerAppend
	}
	x.whole += time.Since(start)
	x.reads = append(x.reads, r.stop()...)
	return nil
}

// perSecond is the number of updates a second.
func (x *appending) perSecond() float64 { return float64(2*x.slides) / x.whole.Seconds() }

// reader takes snapshots and reads the first answers of each, with a rest in
// between, so that the writer has a core.
type reader struct {
	db      *triegs.DB
	query   string
	ended   atomic.Bool
	results chan []time.Duration
}

const readAnswers = 100

func (r *reader) run() {
	took := make([]time.Duration, 0, 1<<14)
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
