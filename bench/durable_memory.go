package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/triegs/triegs"
)

// resetPeak makes peakResident count from here, where the system can do that.
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakResident is the greatest resident set in bytes since resetPeak, 0 where
// the system does not tell.
func peakResident() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	field, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kb, _ := strconv.ParseInt(field, 10, 64)
	return kb << 10
}

// openHandles is the number of open files of the process, 0 where the system
// does not tell.
func openHandles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list) - 1 // the directory that was read
}

// measureRegister registers a query of two atoms over a relation that is there,
// while epochs of edgesBeside edges are appended, as they are for a while before.
func measureRegister(edges int) (figures []Figure, err error) {
	w, err := Find("hop4")
	if err != nil {
		return nil, err
	}
	_, base := inUse()
	db, err := triegs.Open("", nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	want, err := loadHops(db, w, edges)
	if err != nil {
		return nil, err
	}
	_, before := inUse()
	a := &appender{db: db}
	alone := a.until(time.After(2 * time.Second))
	beside, stopped := make(chan []time.Duration, 1), make(chan time.Time)
	t := begin()
	go func() { beside <- a.until(stopped) }()
	_, err = db.Register(context.Background(), "hop2", "hop2(a, b, c) :- r(a, b), r(b, c).")
	figures = append(t.figures(), Figure{"before MB", float64(before-base) / mega, ""})
	close(stopped)
	during := <-beside
	if err = errors.Join(err, a.err); err != nil {
		return nil, err
	}
	figures = append(figures, memoryFigures(base)...)
	for _, q := range []struct {
		name string
		of   float64
	}{{"append p50", .5}, {"append p99", .99}, {"longest append", 1}} {
		figures = append(figures, ratio(q.name+" ms", quantile(alone, q.of)/1e3, quantile(during, q.of)/1e3)...)
	}
	figures = append(figures, Figure{"appends meanwhile", float64(len(during)), ""})
	snap, err := db.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	if n, _, err := snap.Count(context.Background(), "hop2"); err != nil || n != want {
		return nil, errors.Join(err, fmt.Errorf("%d answers, the reference is %d", n, want))
	}
	return figures, nil
}

// loadHops loads a stream and returns the number of its paths of two edges.
func loadHops(db *triegs.DB, w *Workload, edges int) (paths int64, err error) {
	s := w.Stream(edges, 0, float64(edges)/200_000)
	if err := (&byAPI{s: s, db: db}).load(); err != nil {
		return 0, err
	}
	out, in := degrees(s.Edges)
	for k, n := range in {
		paths += n * out[k]
	}
	return paths, nil
}

// edgesBeside is how many edges an epoch has that is measured.
const edgesBeside = 100

// appender appends edges that join no other.
type appender struct {
	db   *triegs.DB
	next int64
	err  error
}

// until appends an epoch every millisecond until end has something, or is closed,
// and returns how long each has taken.
func (a *appender) until(end <-chan time.Time) (took []time.Duration) {
	events := make([]triegs.Event, edgesBeside)
	for a.err == nil {
		for i := range events {
			a.next++
			events[i] = triegs.Edge("r", triegs.Int(-2*a.next), triegs.Int(-2*a.next-1))
		}
		t := time.Now()
		_, a.err = a.db.Append(context.Background(), triegs.Batch{Events: events})
		took = append(took, time.Since(t))
		select {
		case <-end:
			return took
		case <-time.After(time.Millisecond):
		}
	}
	return took
}

// longTerms is a store of facts link(x, y) whose terms are long and all
// different.
type longTerms struct {
	facts int
	db    *triegs.DB
}

func (l *longTerms) tuple(i int) []triegs.Term {
	const prefix = "https://data.example.org/collections/archive/entities/"
	return []triegs.Term{triegs.IRI(fmt.Sprintf("%s%09d", prefix, 2*i)), triegs.IRI(fmt.Sprintf("%s%09d", prefix, 2*i+1))}
}

func (l *longTerms) append(op triegs.Op, from, to int, which func(i int) int) error {
	var events []triegs.Event
	for i := from; i < to; i++ {
		events = append(events, triegs.Event{Op: op, Relation: "link", Tuple: l.tuple(which(i))})
		if len(events) == loadEpoch || i == to-1 {
			if _, err := l.db.Append(context.Background(), triegs.Batch{Events: events}); err != nil {
				return err
			}
			events = events[:0]
		}
	}
	return nil
}

// ingestLongTerms makes a store with so many long terms and its checkpoint.
func ingestLongTerms(dir string, terms int) (err error) {
	l := &longTerms{facts: terms / 2}
	if l.db, err = triegs.Open(storePath(dir), manual(triegs.SyncNone)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.db.Close()) }()
	if _, err := l.db.Register(context.Background(), "q", "q(x, y) :- link(x, y)."); err != nil {
		return err
	}
	if err := l.append(triegs.Insert, 0, l.facts, func(i int) int { return i }); err != nil {
		return err
	}
	return l.db.Checkpoint(context.Background())
}

// measureLongTerms opens a store of long terms with a bound for their memory,
// and measures what reads and writes of their texts take.
func measureLongTerms(dir string, terms int, cache int64) (figures []Figure, err error) {
	if _, err := os.Stat(storePath(dir)); err != nil {
		if err := ingestLongTerms(dir, terms); err != nil {
			return nil, err
		}
	}
	_, base := inUse()
	t := begin()
	o := manual(triegs.SyncNone)
	o.DictionaryCacheBytes = cache
	l := &longTerms{facts: terms / 2}
	if l.db, err = triegs.Open(storePath(dir), o); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.db.Close()) }()
	figures = append(t.figures()[:1], memoryFigures(base)...)
	figures = append(figures, Figure{"dictionary MB", float64(l.db.Metrics().DictionaryBytes) / mega, ""})
	n := min(l.facts, 20_000)
	r := splitmix(77)
	anywhere := func(int) int { return r.below(l.facts) }
	few := func(int) int { return r.below(max(l.facts/1000, 1)) }
	steps := []struct {
		name string
		do   func() error
	}{
		{"terms in order", func() error { return l.enumerate(n) }},
		{"lookup of any", func() error { return l.lookup(n, anywhere) }},
		{"lookup of 0.1 %", func() error { return l.lookup(n, few) }},
		{"insert of any", func() error { return l.append(triegs.Insert, 0, n, anywhere) }},
	}
	for _, s := range steps {
		t := time.Now()
		if err := s.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		figures = append(figures, Figure{s.name, float64(time.Since(t)) / 1e3 / float64(n), "µs"})
	}
	return figures, nil
}

// lookup asks for n answers by their terms.
func (l *longTerms) lookup(n int, which func(i int) int) error {
	snap, err := l.db.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	for i := range n {
		row, err := snap.Lookup("q", l.tuple(which(i))...)
		if err != nil || row == nil {
			return errors.Join(err, fmt.Errorf("answer %d is missing", i))
		}
	}
	return nil
}

// enumerate reads the terms of n answers.
func (l *longTerms) enumerate(n int) error {
	snap, err := l.db.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	for row, err := range snap.Answers("q") {
		if err != nil {
			return err
		}
		if row.Term(0).IsZero() || row.Term(1).IsZero() {
			return errors.New("a term is missing")
		}
		if n--; n == 0 {
			break
		}
	}
	return nil
}
