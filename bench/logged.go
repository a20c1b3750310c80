package bench

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/triegs/triegs"
)

// withStore runs do on a store in a directory that is removed afterwards, or in
// memory.
func withStore(logged bool, w *Workload, do func(*triegs.DB) error) (err error) {
	dir := ""
	if logged {
		if dir, err = os.MkdirTemp("", "triegs-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	db, err := openWith(dir, w)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

// measureAppends is the time on the wall of an edge in epochs of n, in the
// default durability or in memory.
func measureAppends(w *Workload, logged bool, edges, n int) (figures []Figure, err error) {
	s := w.Stream(edges, 0, float64(edges)/200000)
	err = withStore(logged, w, func(db *triegs.DB) error {
		if err := appendEdges(db, s, 0, edges/2, n); err != nil {
			return err
		}
		m0, t := db.Metrics(), time.Now()
		if err := appendEdges(db, s, edges/2, edges, n); err != nil {
			return err
		}
		took, m1 := time.Since(t), db.Metrics()
		figures = append(figures, Figure{"edge", float64(took) / float64(edges-edges/2), "ns"})
		if logged {
			figures = append(figures, logFigures(m0, m1, edges-edges/2)...)
		}
		return checkCount(db, s)
	})
	return figures, err
}

func logFigures(m0, m1 triegs.Metrics, edges int) []Figure {
	epochs := float64(m1.LogEntries - m0.LogEntries)
	return []Figure{
		{"syncs an epoch", float64(m1.LogSyncs-m0.LogSyncs) / epochs, ""},
		{"log bytes an edge", float64(m1.LogBytes-m0.LogBytes) / float64(edges), ""},
	}
}

// checkCount compares the number of answers with the reference.
func checkCount(db *triegs.DB, s *Stream) error {
	n, err := (&byAPI{s: s, db: db}).answers()
	if err == nil && n != s.Answers(0) {
		err = fmt.Errorf("%d answers, the reference is %d", n, s.Answers(0))
	}
	return err
}

// measureAppenders has many goroutines append single edges, each its share.
func measureAppenders(w *Workload, logged bool, appenders, each int) (figures []Figure, err error) {
	edges := appenders * each
	s := w.Stream(edges, 0, float64(edges)/200000)
	err = withStore(logged, w, func(db *triegs.DB) error {
		m0, t := db.Metrics(), time.Now()
		errs := make([]error, appenders)
		var all sync.WaitGroup
		for i := range appenders {
			all.Go(func() { errs[i] = appendEdges(db, s, i*each, (i+1)*each, 1) })
		}
		all.Wait()
		took, m1 := time.Since(t), db.Metrics()
		figures = append(figures, Figure{"edge", float64(took) / float64(edges), "ns"})
		if logged {
			figures = append(figures, logFigures(m0, m1, edges)...)
		}
		return errors.Join(errors.Join(errs...), checkCount(db, s))
	})
	return figures, err
}

// measureSync is what one sync of a small write costs on the file system of the
// temporary directory, which is the floor of a logged epoch.
func measureSync() (figures []Figure, err error) {
	f, err := os.CreateTemp("", "triegs-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, 16<<10)
	const times = 100
	t := time.Now()
	for range times {
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
	}
	return []Figure{{"edge", float64(time.Since(t)) / times / 1000, "ns"}}, nil
}
