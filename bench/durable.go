package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/bench/internal/turns"
)

// durableCases are the measurements of what is kept on disk. The cases of one
// name are steps: each goes on with the directory that the one before has left.
func durableCases(edges int) (cases []*Case) {
	add := func(name, contender string, measure func(dir string) ([]Figure, error)) {
		cases = append(cases, &Case{"durable", name, contender, measure})
	}
	d := durable{edges: edges, slides: edges / 100}
	add("recovery", "ingest in memory", func(string) ([]Figure, error) { return d.ingest("") })
	add("recovery", "ingest", d.ingest)
	add("recovery", "replay the log", d.open)
	add("recovery", "checkpoint", d.checkpoint)
	add("recovery", "open from the checkpoint", d.open)
	add("checkpoints", "full", d.full)
	add("checkpoints", "after 1 % was replaced", d.increment)
	add("checkpoints", "soon after 1 % more", func(dir string) ([]Figure, error) { return d.increments(dir, 1, soon, 0) })
	add("checkpoints", "3 s of use after 1 % more", func(dir string) ([]Figure, error) {
		return d.increments(dir, 2+soon, soon, min(3*time.Second, time.Duration(edges)*time.Microsecond))
	})
	for _, mode := range []triegs.SyncMode{triegs.SyncEpoch, triegs.SyncNone} {
		add("appends beside a full checkpoint", mode.String(), func(dir string) ([]Figure, error) {
			return d.appends(filepath.Join(dir, mode.String()), mode)
		})
	}
	add("1,000 checkpoints", "1 % replaced before each", d.many)
	add("small store", "open", d.small)
	add("register", "two atoms", func(string) ([]Figure, error) { return measureRegister(edges) })
	for _, cache := range []int64{0, 1 << 20, 32 << 20} {
		name := map[int64]string{0: "all in memory", 1 << 20: "cache of 1 MiB", 32 << 20: "cache of 32 MiB"}[cache]
		add("long terms", name, func(dir string) ([]Figure, error) { return measureLongTerms(dir, edges*2/5, cache) })
	}
	return cases
}

// durable is a store of edges of the first workload with two queries.
type durable struct{ edges, slides int }

// secondQuery stands beside the one of the workload.
const secondQuery = "two(y, z, w) :- b(y, z), c(z, w)."

func (d durable) stream() *Stream {
	return workloads[0].Stream(d.edges, d.slides, float64(d.edges)/200_000)
}

// expected is what the answers of a store must be, for steps that shall not have
// the stream in their memory.
type expected struct{ Answers int64 }

func expectedPath(dir string) string { return filepath.Join(dir, "expected.json") }

func storePath(dir string) string { return filepath.Join(dir, "store") }

func writeExpected(dir string, x expected) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return os.WriteFile(expectedPath(dir), b, 0o600)
}

func readExpected(dir string) (x expected, err error) {
	b, err := os.ReadFile(expectedPath(dir))
	if err == nil {
		err = json.Unmarshal(b, &x)
	}
	return x, err
}

// check compares the answers of a store with the reference.
func (x expected) check(db *triegs.DB) error {
	b := byAPI{s: &Stream{Workload: workloads[0]}, db: db}
	n, err := b.answers()
	if err == nil && n != x.Answers {
		err = fmt.Errorf("%d answers, the reference is %d", n, x.Answers)
	}
	return err
}

// manual takes checkpoints only when asked.
func manual(mode triegs.SyncMode) *triegs.Options {
	return &triegs.Options{Durability: mode, CheckpointBytes: -1}
}

// fresh makes a store with the queries, in memory if dir is "".
func (d durable) fresh(dir string, o *triegs.Options) (*triegs.DB, error) {
	if dir != "" {
		dir = storePath(dir)
	}
	db, err := triegs.Open(dir, o)
	if err != nil {
		return nil, err
	}
	w := workloads[0]
	for _, q := range [][2]string{{w.Name, w.Query}, {"two", secondQuery}} {
		if _, err := db.Register(context.Background(), q[0], q[1]); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

// spent measures what something takes: time on the wall, CPU time of all
// threads, and the greatest resident set.
type spent struct {
	wall time.Time
	cpu  float64
}

func begin() spent {
	resetPeak()
	return spent{time.Now(), cpuSeconds()}
}

func (s spent) figures() []Figure {
	return []Figure{
		{"time", time.Since(s.wall).Seconds(), "s"},
		{"CPU", cpuSeconds() - s.cpu, "s"},
	}
}

const mega = 1e6

// memoryFigures are the greatest resident set since begin, what stays after a
// collection, and their ratio; base is what the process had before.
func memoryFigures(base int64) []Figure {
	peak := peakResident()
	_, steady := inUse()
	// A store of a few facts is lost in what a process gives back by chance.
	peak, steady = max(peak-base, 1), max(steady-base, 1)
	return []Figure{
		{"peak MB", float64(peak) / mega, ""},
		{"steady MB", float64(steady) / mega, ""},
		{"peak by steady", float64(peak) / float64(steady), ""},
	}
}

// ingest appends all edges in epochs, in memory if dir is "".
func (d durable) ingest(dir string) (figures []Figure, err error) {
	s := d.stream()
	_, base := inUse()
	t := begin()
	db, err := d.fresh(dir, manual(triegs.SyncEpoch))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := (&byAPI{s: s, db: db}).load(); err != nil {
		return nil, err
	}
	figures = append(t.figures(), memoryFigures(base)...)
	x := expected{Answers: s.Answers(0)}
	if err := x.check(db); err != nil || dir == "" {
		return figures, err
	}
	return figures, writeExpected(dir, x)
}

// open opens the store that was left.
func (d durable) open(dir string) (figures []Figure, err error) {
	x, err := readExpected(dir)
	if err != nil {
		return nil, err
	}
	_, base := inUse()
	t := begin()
	db, err := triegs.Open(storePath(dir), manual(triegs.SyncEpoch))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	figures = append(t.figures(), memoryFigures(base)...)
	r := db.Recovery()
	for _, p := range []struct {
		name string
		took time.Duration
	}{{"terms", r.Terms}, {"facts", r.Facts}, {"views", r.Views}, {"scan", r.Scan}, {"replay", r.Replay}} {
		figures = append(figures, Figure{p.name + " s", p.took.Seconds(), ""})
	}
	return figures, x.check(db)
}

// checkpoint opens the store that was left and takes a checkpoint.
func (d durable) checkpoint(dir string) (figures []Figure, err error) {
	db, err := triegs.Open(storePath(dir), manual(triegs.SyncEpoch))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return takeCheckpoint(db)
}

func takeCheckpoint(db *triegs.DB) ([]Figure, error) {
	inUse()
	t := begin()
	if err := db.Checkpoint(context.Background()); err != nil {
		return nil, err
	}
	figures := append(t.figures(), memoryFigures(0)...)
	return append(figures, Figure{"written", float64(db.Metrics().Checkpoints.Bytes), "bytes"}), nil
}

// full makes a store and its first checkpoint, which has all of it.
func (d durable) full(dir string) (figures []Figure, err error) {
	s := d.stream()
	db, err := d.fresh(dir, manual(triegs.SyncNone))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := (&byAPI{s: s, db: db}).load(); err != nil {
		return nil, err
	}
	if err := writeExpected(dir, expected{Answers: s.Answers(0)}); err != nil {
		return nil, err
	}
	return takeCheckpoint(db)
}

// increment opens the store, lets all slides pass, and saves what they changed.
func (d durable) increment(dir string) (figures []Figure, err error) {
	return d.replaced(dir, 0, 1, 0, func(db *triegs.DB, slide func() error) ([]Figure, error) {
		if err := slide(); err != nil {
			return nil, err
		}
		return takeCheckpoint(db)
	})
}

// soon is how many increments follow each other in increments.
const soon = 5

// increments goes on in a store in which all slides have passed so many times: an
// increment that is not measured, and then some more, each as soon as as many edges
// as before are replaced, which takes a given time at least. The figures are medians
// of theirs.
func (d durable) increments(dir string, first, times int, within time.Duration) (figures []Figure, err error) {
	return d.replaced(dir, first, 1+times, within, func(db *triegs.DB, slide func() error) ([]Figure, error) {
		values := make(map[string][]float64)
		for i := range 1 + times {
			if err := slide(); err != nil {
				return nil, err
			}
			t := begin()
			if err := db.Checkpoint(context.Background()); err != nil {
				return nil, err
			}
			all := append(t.figures(), Figure{"written", float64(db.Metrics().Checkpoints.Bytes), "bytes"})
			for _, f := range all {
				if i > 0 {
					values[f.Name] = append(values[f.Name], f.Value)
				}
			}
			figures = all
		}
		for i, f := range figures {
			figures[i].Value = turns.Median(values[f.Name])
		}
		return figures, nil
	})
}

// replaced opens the store in which the first so many times all slides have
// passed, and has save let them pass so many times more and save what they
// changed, each time an increment. The slides of one time are spread over a given
// time at least.
func (d durable) replaced(dir string, first, times int, within time.Duration, save func(db *triegs.DB, slide func() error) ([]Figure, error)) (figures []Figure, err error) {
	each := d.slides
	d.slides *= first + times
	s := d.stream()
	db, err := triegs.Open(storePath(dir), manual(triegs.SyncNone))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	b := &byAPI{s: s, db: db}
	at := first * each
	figures, err = save(db, func() error {
		from, to := at, at+each
		at = to
		pause := within / time.Duration((each+999)/1000)
		for i := from; i < to; i += 1000 {
			time.Sleep(pause)
			if err := b.slide(i, min(i+1000, to)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if c := db.Metrics().Checkpoints; c.Full != 0 || c.Taken != uint64(times) {
		return nil, fmt.Errorf("%d checkpoints, %d of them full", c.Taken, c.Full)
	}
	return figures, expected{Answers: s.Answers(at)}.check(db)
}
