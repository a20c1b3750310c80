package rootvec

import (
	"slices"
	"testing"

	"github.com/triegs/triegs/mvcc"
)

// queries is a catalog of so many queries.
type queries int

func (q queries) QueryCount() int { return int(q) }

// publisher publishes vectors of ascending epochs.
type publisher struct {
	Current
	catalog queries
}

func (p *publisher) publish() {
	v := p.Fresh()
	v.Epoch, v.Catalog = p.Epoch()+1, p.catalog
	p.Publish(v)
}

// wantKept checks which epochs are kept, and that nothing else is pinned beside
// others.
func (p *publisher) wantKept(t *testing.T, want ...mvcc.Version) {
	t.Helper()
	if got := p.Kept(nil); !slices.Equal(got, want) {
		t.Fatalf("kept are %v, want %v", got, want)
	}
}

// step takes the next vector, and moves to it.
func (p *publisher) step(t *testing.T, f *Follower, at *Vector, want mvcc.Version, how Step) *Vector {
	t.Helper()
	v, step := p.Next(f)
	if step != how || v == nil || v.Epoch != want {
		t.Fatalf("next is %v, step %d, want epoch %d, step %d", v, step, want, how)
	}
	p.Unpin(at)
	p.Move(f, v.Epoch)
	return v
}

func begin(Catalog) {}

func always(Catalog) bool { return true }

func TestHistory(t *testing.T) {
	p := &publisher{catalog: 1}
	p.publish()
	each := &Follower{Each: true, Buffer: 3, Holds: always}
	newest := &Follower{Holds: always}
	at, at2 := p.Follow(each, begin), p.Follow(newest, begin)
	if v, step := p.Next(each); v != nil || step != StepNone {
		t.Fatalf("%v, step %d where nothing has come", v, step)
	}
	for range 3 {
		p.publish()
	}
	p.wantKept(t, 2, 3)
	at = p.step(t, each, at, 2, StepNext)
	p.wantKept(t, 3)
	at2 = p.step(t, newest, at2, 4, StepNext)
	p.publish()
	p.wantKept(t, 3, 4)
	if lag := p.Lag(each); lag != 3 {
		t.Fatalf("lag %d", lag)
	}
	p.publish() // one too many
	p.wantKept(t)
	at = p.step(t, each, at, 6, StepSlow)
	p.publish()
	at = p.step(t, each, at, 7, StepNext)
	for _, f := range []*Follower{each, newest} {
		p.Leave(f)
	}
	p.Unpin(at)
	p.Unpin(at2)
	p.publish()
	if _, pinned := p.Pinned(nil); len(pinned) > 0 {
		t.Fatalf("epochs %v stay pinned", pinned)
	}
}

// The sequence of a follower ends with the last vector that holds what he reads,
// also for one who comes behind that.
func TestHistoryEnds(t *testing.T) {
	p := &publisher{catalog: 2}
	p.Retain(10)
	for range 3 {
		p.publish()
	}
	holds := func(c Catalog) bool { return c.QueryCount() == 2 }
	early := &Follower{Holds: holds}
	at := p.Follow(early, begin)
	p.publish()
	p.publish()
	p.catalog = 1
	p.publish()
	p.publish()
	late := &Follower{Each: true, Buffer: 9, Holds: holds}
	from, oldest := p.FollowFrom(late, 4, begin)
	if from == nil || oldest != 1 {
		t.Fatalf("epoch 4 is %v, the oldest %d", from, oldest)
	}
	at, from = p.step(t, early, at, 5, StepNext), p.step(t, late, from, 5, StepNext)
	for _, f := range []*Follower{early, late} {
		if v, step := p.Next(f); v != nil || step != StepOver {
			t.Fatalf("behind the end: %v, step %d", v, step)
		}
		p.Leave(f)
	}
	p.Unpin(at)
	p.Unpin(from)
	if v, _ := p.FollowFrom(late, 8, begin); v != nil {
		t.Fatalf("an epoch to come is %v", v)
	}
	p.Retain(0)
	if _, pinned := p.Pinned(nil); len(pinned) > 0 {
		t.Fatalf("epochs %v stay pinned", pinned)
	}
}

// A follower that branches off begins where the other stands, also behind the end of
// the sequence, and what waits is kept for the one that is farther behind.
func TestBranch(t *testing.T) {
	p := &publisher{catalog: 1}
	p.publish()
	holds := func(c Catalog) bool { return c.QueryCount() == 1 }
	parked := &Follower{Each: true, Buffer: 9, Holds: holds}
	place := p.Follow(parked, begin)
	for range 3 {
		p.publish()
	}
	p.catalog = 0
	p.publish()
	for range 2 { // one after the other
		f := &Follower{Each: true, Buffer: 9, Holds: holds}
		p.Branch(f, parked, place)
		at := place
		for e := range uint64(3) {
			at = p.step(t, f, at, e+2, StepNext)
		}
		if v, step := p.Next(f); v != nil || step != StepOver {
			t.Fatalf("behind the end: %v, step %d", v, step)
		}
		p.Leave(f)
		p.Unpin(at)
		p.wantKept(t, 2, 3, 4)
	}
	p.Want(parked, false)
	p.wantKept(t)
	p.Leave(parked)
	p.Unpin(place)
	if _, pinned := p.Pinned(nil); len(pinned) > 0 {
		t.Fatalf("epochs %v stay pinned", pinned)
	}
}
