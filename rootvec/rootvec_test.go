package rootvec

import (
	"math/rand/v2"
	"testing"
)

func TestPinsKeepTheirVector(t *testing.T) {
	var c Current
	publish := func(e uint64) {
		v := c.Fresh()
		v.Epoch = e
		v.Roots = append(v.Roots[:0], e)
		c.Publish(v)
	}
	publish(1)
	one := c.Pin()
	c.Again(one)
	for e := uint64(2); e < 10; e++ {
		publish(e)
	}
	if one.Epoch != 1 || one.Roots[0] != 1 || c.Epoch() != 9 {
		t.Fatalf("pinned epoch %d root %d, published %d", one.Epoch, one.Roots[0], c.Epoch())
	}
	if published, pins := c.Pinned(nil); published != 9 || len(pins) != 1 || pins[0] != 1 {
		t.Fatalf("published %d pinned %v", published, pins)
	}
	if c.Unpin(one) || !c.Unpin(one) || !c.Released() {
		t.Fatal("the last release of an old epoch is not reported")
	}
	if _, pinned := c.Oldest(); pinned {
		t.Fatal("a pin is left")
	}
	if n := testing.AllocsPerRun(100, func() { publish(c.Epoch() + 1) }); n != 0 {
		t.Fatalf("%v allocations a publication", n)
	}
}

func TestDigestIsOrderFreeAndSensitive(t *testing.T) {
	type fact struct {
		rel   Relation
		x, y  uint64
		count int64
	}
	r, s := NewRelation("r", 2), NewRelation("s", 2)
	var h Hasher
	sum := func(facts []fact) (d Digest) {
		for _, f := range facts {
			h.Fact(f.rel, 2)
			h.Column(0, f.x*31+7, f.x*17+3)
			h.Column(1, f.y*31+7, f.y*17+3)
			h.Move(&d, 0, f.count/2)
			h.Move(&d, f.count/2, f.count)
		}
		return d
	}
	base := []fact{{r, 1, 2, 3}, {r, 2, 1, 4}, {s, 1, 2, 5}, {r, 1, 1, 1}}
	want := sum(base)
	rng := rand.New(rand.NewPCG(3, 3))
	for range 20 {
		rng.Shuffle(len(base), func(i, j int) { base[i], base[j] = base[j], base[i] })
		if got := sum(base); got != want {
			t.Fatalf("another order gives %v, want %v", got, want)
		}
	}
	for name, other := range map[string][]fact{
		"columns swapped":  {{r, 1, 2, 4}, {r, 2, 1, 3}, {s, 1, 2, 5}, {r, 1, 1, 1}},
		"relation changed": {{r, 1, 2, 3}, {r, 2, 1, 4}, {r, 1, 2, 5}, {r, 1, 1, 1}},
		"fact missing":     {{r, 1, 2, 3}, {r, 2, 1, 4}, {s, 1, 2, 5}},
		"count moved":      {{r, 1, 2, 2}, {r, 2, 1, 5}, {s, 1, 2, 5}, {r, 1, 1, 1}},
		"huge count":       {{r, 1, 2, 3 + 1<<60}, {r, 2, 1, 4}, {s, 1, 2, 5}, {r, 1, 1, 1}},
	} {
		if got := sum(other); got[0] == want[0] || got[1] == want[1] {
			t.Errorf("%s: a lane of the digest does not change", name)
		}
	}
}
