package bench

import (
	"fmt"
	"testing"

	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/rootvec"
)

// BenchmarkFollowing is a follower of every change, an operation being one update of
// a stream; see BenchmarkPaired.
//
//	go test ./bench -run '^$' -bench Following/path3/ids/200 -benchtime 200000x -cpuprofile cpu.out
func BenchmarkFollowing(b *testing.B) {
	for _, w := range workloads[:3] {
		for how, c := range map[string]Contender{followIDs: Engine, followTerms: API} {
			for _, updates := range []int{2, 200} {
				b.Run(fmt.Sprintf("%s/%s/%d", w.Name, how, updates), func(b *testing.B) { benchmarkFollowing(b, w, c, how, updates) })
			}
		}
	}
}

func benchmarkFollowing(b *testing.B, w *Workload, c Contender, how string, updates int) {
	const window = 200_000
	slides := max(1, b.N/updates) * updates / 2
	s := w.Stream(window, slides+1, 1)
	p, err := start(c, s)
	if err != nil {
		b.Fatal(err)
	}
	m := &following{Run: Run{Updates: updates}, s: s, p: p}
	if err := p.load(); err != nil {
		b.Fatal(err)
	}
	if err := m.start(how, 1); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if err := m.slides(0, slides); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(m.changes())/float64(2*slides), "changes/op")
	if err := m.end(slides); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkChanges walks the changes of pinned epochs of 200 updates without a writer
// beside it, an operation being one of the updates.
func BenchmarkChanges(b *testing.B) {
	const window, epochs, updates = 200_000, 100, 200
	for _, w := range workloads[:3] {
		b.Run(w.Name, func(b *testing.B) {
			s := w.Stream(window, epochs*updates/2, 1)
			p, err := startEngine(s)
			if err == nil {
				err = p.load()
			}
			if err != nil {
				b.Fatal(err)
			}
			e := p.(*byEngine)
			pinned := []*rootvec.Vector{e.e.Current.Pin()}
			for i := range epochs {
				if err := p.slide(i*updates/2, (i+1)*updates/2); err != nil {
					b.Fatal(err)
				}
				pinned = append(pinned, e.e.Current.Pin())
			}
			q := pinned[0].Catalog.(*epoch.Schema).Views[w.Name]
			was, is := q.Bind(pinned[0].Space, pinned[0].Roots), q.Bind(pinned[0].Space, pinned[0].Roots)
			d := q.Deltas(was, is)
			var out changeSink
			b.ResetTimer()
			for i := 0; i*updates < b.N; i++ {
				old, now := pinned[i%epochs], pinned[i%epochs+1]
				was.Rebind(old.Space, old.Roots)
				is.Rebind(now.Space, now.Roots)
				d.Rebind(was, is)
				if err := e.takeChanges(q, d, &out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestFollowing compares what followers take with what the program by hand tells.
func TestFollowing(t *testing.T) {
	t.Parallel()
	for _, w := range workloads[:3] {
		const window, slides = 3000, 200
		s := w.Stream(window, slides+1, .01)
		hand, err := newHandDeltas(w, 0)
		if err != nil {
			t.Fatal(err)
		}
		var want changeSink
		for _, e := range s.Live(0) {
			hand.change(true, e, nil)
		}
		for i := range slides + 1 {
			hand.change(true, s.Edges[window+i], &want)
			hand.change(false, s.Edges[i], &want)
		}
		for _, how := range []string{followIDs, followTerms, followNewest} {
			t.Run(fmt.Sprint(w.Name, " ", how), func(t *testing.T) {
				c := API
				if how == followIDs {
					c = Engine
				}
				p, err := start(c, s)
				if err != nil {
					t.Fatal(err)
				}
				defer p.close()
				m := &following{Run: Run{Updates: 4}, s: s, p: p}
				if err := p.load(); err != nil {
					t.Fatal(err)
				}
				if err := m.start(how, 2); err != nil {
					t.Fatal(err)
				}
				if err := m.slides(0, slides); err != nil {
					t.Fatal(err)
				}
				if err := m.end(slides); err != nil {
					t.Fatal(err)
				}
				for _, f := range m.followers {
					if f.out.sum != want.sum || f.out.n > want.n {
						t.Errorf("%d changes that add up to %x, want at most %d and %x", f.out.n, f.out.sum, want.n, want.sum)
					}
				}
			})
		}
	}
}
