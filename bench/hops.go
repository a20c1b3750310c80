package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/triegs/triegs"
)

// hops is a path that walks so many times through one relation, over a window of
// 5,000 edges between 2,000 vertices that are drawn by Zipf's law: few enough that
// many edges come twice.
type hops struct {
	n        int
	exponent float64
	table    float64 // writes an update that annotated CROWN needs, as measured beside the algorithm's description
}

const (
	hopsVertices = 2000
	hopsWindow   = 5000
	hopsUpdates  = 35000
)

var hopWindows = []hops{{3, 0, 3.29}, {3, .6, 3.23}, {3, 1, 3.08}, {4, 0, 4.41}, {4, .6, 4.29}, {4, 1, 4.04}}

func (h hops) text() string {
	var body []string
	head := "v0"
	for i := range h.n {
		body = append(body, fmt.Sprintf("r(v%d, v%d)", i, i+1))
		head += fmt.Sprintf(", v%d", i+1)
	}
	return fmt.Sprintf("q(%s) :- %s.", head, strings.Join(body, ", "))
}

// paths counts the answers over some edges.
func (h hops) paths(live []Edge) (n int64) {
	edges := make(map[Edge]bool)
	for _, e := range live {
		edges[e] = true
	}
	ends := make(map[uint32]int64) // of paths so far, by their last vertex
	for e := range edges {
		ends[e.Dst]++
	}
	for range h.n - 1 {
		next := make(map[uint32]int64)
		for e := range edges {
			next[e.Dst] += ends[e.Src]
		}
		ends = next
	}
	for _, m := range ends {
		n += m
	}
	return n
}

// measure inserts and retracts edges one by one.
func (h hops) measure() ([]Figure, error) {
	from, to := newZipf(hopsVertices, h.exponent, 0, 11), newZipf(hopsVertices, h.exponent, 0, 12)
	r := splitmix(1007)
	edges := make([]Edge, (hopsUpdates+hopsWindow)/2)
	for i := range edges {
		edges[i] = Edge{0, from.draw(&r), to.draw(&r)}
	}
	ctx := context.Background()
	db, err := triegs.Open("", nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if _, err := db.Register(ctx, "q", h.text()); err != nil {
		return nil, err
	}
	change := func(op triegs.Op, e Edge) error {
		_, err := db.Append(ctx, triegs.Batch{Events: []triegs.Event{{Op: op, Relation: "r", Tuple: []triegs.Term{triegs.Int(int64(e.Src)), triegs.Int(int64(e.Dst))}}}})
		return err
	}
	updates := 0
	for i, e := range edges {
		if err := change(triegs.Insert, e); err != nil {
			return nil, err
		}
		updates++
		if i >= hopsWindow {
			if err := change(triegs.Delete, edges[i-hopsWindow]); err != nil {
				return nil, err
			}
			updates++
		}
	}
	return h.figures(db, edges[len(edges)-hopsWindow:], updates)
}

func (h hops) figures(db *triegs.DB, live []Edge, updates int) ([]Figure, error) {
	ctx := context.Background()
	snap, err := db.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	if n, _, err := snap.Count(ctx, "q"); err != nil || n != h.paths(live) {
		return nil, fmt.Errorf("%d answers (%w), the reference is %d", n, err, h.paths(live))
	}
	x, err := db.Explain(ctx, h.text())
	if err != nil {
		return nil, err
	}
	nodes := 0.0
	for i := range x.Nodes {
		nodes += x.Nodes[i].Live.Writes
	}
	m := db.Metrics()
	all := float64(m.ViewWrites) / float64(updates)
	return []Figure{
		{"writes by node", nodes, "an update"},
		{"of the table", nodes / h.table, ""},
		{"writes", all, "an update"},
		{"woken", float64(m.Woken) / float64(updates), "an update"},
	}, nil
}

// hopCases are the measurements of what windows write.
func hopCases() (cases []*Case) {
	for _, h := range hopWindows {
		cases = append(cases, &Case{"writes", "windows of 5,000 edges", fmt.Sprintf("%d hops, Zipf %.1f", h.n, h.exponent), func(string) ([]Figure, error) { return h.measure() }})
	}
	return cases
}
