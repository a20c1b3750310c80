package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/triegs/triegs"
)

const (
	// soakParts is into how many parts a soak is cut, which shall be alike.
	soakParts = 10
	// soakEpoch is the number of events in an epoch of it.
	soakEpoch = 1000
)

// soak is a stream of edges through a window over a logged store with the default
// options. Edge i leaves vertex i, which no edge before it has named but as its
// end, so that the names are always new.
type soak struct {
	db     *triegs.DB
	window int
	events []triegs.Event
}

// soakTo is the vertex that edge i enters.
func soakTo(i int) int { return i + 1 + i*7919%50 }

func soakTerm(v int) triegs.Term {
	return triegs.IRI(fmt.Sprintf("https://data.example.org/nodes/%09d", v))
}

// append appends edges as one epoch.
func (s *soak) append(from, to int) error {
	s.events = s.events[:0]
	for i := from; i < to; i++ {
		s.events = append(s.events, triegs.Event{
			Relation: "link", Tuple: []triegs.Term{soakTerm(i), soakTerm(soakTo(i))}, Time: time.Unix(0, int64(i)),
		})
	}
	_, err := s.db.Append(context.Background(), triegs.Batch{Events: s.events, Time: time.Unix(0, int64(to-1))})
	return err
}

// paths is the number of paths of two edges in the window behind so many edges.
func (s *soak) paths(edges int) (n int64) {
	for i := max(0, edges-s.window); i < edges; i++ {
		if soakTo(i) < edges {
			n++
		}
	}
	return n
}

// soakPart is what one part of a soak has taken, and what was there at its end.
type soakPart struct {
	wall, cpu   float64 // ns an event
	log         float64 // bytes an event
	heap        int64   // after a collection
	checkpoints int64   // bytes
	rest        int64   // bytes of the directory beside them
	terms       float64
}

// run appends some edges and looks at what they have left.
func (s *soak) run(dir string, from, to int) (p soakPart, err error) {
	m0, t, c := s.db.Metrics(), time.Now(), cpuSeconds()
	for i := from; i < to; i += soakEpoch {
		if err := s.append(i, min(i+soakEpoch, to)); err != nil {
			return p, err
		}
	}
	n := float64(to - from)
	p.wall, p.cpu = float64(time.Since(t))/n, (cpuSeconds()-c)*1e9/n
	m1 := s.db.Metrics()
	p.log, p.terms = float64(m1.LogBytes-m0.LogBytes)/n, float64(m1.Terms)
	p.heap, _ = inUse()
	p.checkpoints, p.rest = diskUse(dir)
	snap, err := s.db.Snapshot()
	if err != nil {
		return p, err
	}
	defer snap.Close()
	if got, _, err := snap.Count(context.Background(), "hops"); err != nil || got != s.paths(to) {
		return p, fmt.Errorf("%d answers (%w) behind %d edges, the reference is %d", got, err, to, s.paths(to))
	}
	return p, nil
}

// measureSoak sends edges through a window of a hundredth of them.
func measureSoak(dir string, edges int) (figures []Figure, err error) {
	s := &soak{window: max(edges/100, soakEpoch)}
	dir = storePath(dir)
	if s.db, err = triegs.Open(dir, nil); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.db.Close()) }()
	text := withWindow("hops(x, y, z) :- link(x, y), link(y, z).", s.window)
	if _, err := s.db.Register(context.Background(), "hops", text); err != nil {
		return nil, err
	}
	var parts [soakParts]soakPart
	for i := range parts {
		if parts[i], err = s.run(dir, i*edges/soakParts, (i+1)*edges/soakParts); err != nil {
			return nil, err
		}
	}
	return soakFigures(&parts), nil
}

// soakFigures are those of the first part and of the last, and the most of all.
func soakFigures(parts *[soakParts]soakPart) (figures []Figure) {
	for _, f := range []struct {
		name string
		of   func(p *soakPart) float64
	}{
		{"ns an event", func(p *soakPart) float64 { return p.wall }},
		{"CPU ns an event", func(p *soakPart) float64 { return p.cpu }},
		{"log bytes an event", func(p *soakPart) float64 { return p.log }},
		{"heap MB", func(p *soakPart) float64 { return float64(p.heap) / mega }},
		{"checkpoints MB", func(p *soakPart) float64 { return float64(p.checkpoints) / mega }},
		{"log MB", func(p *soakPart) float64 { return float64(p.rest) / mega }},
		{"terms", func(p *soakPart) float64 { return p.terms }},
	} {
		first, last, most := f.of(&parts[0]), f.of(&parts[soakParts-1]), 0.0
		for i := range parts {
			most = max(most, f.of(&parts[i]))
		}
		figures = append(figures, Figure{f.name, first, ""}, Figure{f.name + ", last", last, ""}, Figure{f.name + ", most", most, ""})
	}
	return figures
}
