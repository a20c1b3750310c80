package fuzz

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/triegs/triegs"
)

// consumer is one that has a name, as it knows itself.
type consumer struct {
	query string
	opts  triegs.SubscribeOptions
	width int
	sub   *triegs.Subscription // nil while it is away

	begun bool
	whole bool           // the whole answer was not acknowledged
	acked triegs.Epoch   // what it has acknowledged, or where it began
	at    triegs.Epoch   // what it was told last
	told  []triegs.Epoch // and may acknowledge
}

// durable plays a store with names that are attached, detached and restarted.
type durable struct {
	*world
	rng     *rand.Rand
	dir     string
	copies  string // where stores go on that were not closed
	stream  *stream
	answers map[triegs.Epoch]map[string]printed
	widths  map[string]int
	all     []*consumer
	met     map[string]int
}

func (d *durable) options() *triegs.Options {
	o := &triegs.Options{CheckpointBytes: -1, RetainedEpochs: d.rng.IntN(3) * 3}
	if d.rng.IntN(2) == 0 {
		o.DictionaryCacheBytes = 1 + d.rng.Int64N(1000)
	}
	return o
}

// note remembers the answers at the newest epoch.
func (d *durable) note() {
	d.Helper()
	s := d.snapshot()
	defer s.Close()
	m := map[string]printed{}
	for name, width := range d.widths {
		var err error
		if m[name], err = answersOf(s, name, width); err != nil {
			d.Fatal(err)
		}
	}
	d.answers[s.Epoch()] = m
}

// attach begins where the name was left, or for the first time.
func (d *durable) attach(c *consumer) {
	d.Helper()
	c.sub = d.subscribe(c.query, c.opts)
	switch {
	case c.begun && !c.whole:
		c.at = c.acked
	default:
		c.begun, c.whole = true, c.opts.Mode == triegs.SnapshotFirst
		c.acked = d.epoch()
		c.at = c.acked
		if c.whole {
			c.at = 0
		}
	}
	c.told = nil
}

// take is told one update, if there is one, and checks it.
func (d *durable) take(c *consumer) {
	d.Helper()
	last := d.epoch()
	if c.sub == nil || c.at == last {
		return
	}
	err := next(c.sub, func(u *triegs.Update) error {
		var before printed
		switch {
		case u.Whole != (c.at == 0):
			return fmt.Errorf("whole is %v behind epoch %d", u.Whole, c.at)
		case u.Whole && u.Epoch != c.acked:
			return fmt.Errorf("the whole answer is of epoch %d, begun at %d", u.Epoch, c.acked)
		case u.Whole:
			d.met["whole"]++
		case u.From != c.at, c.opts.PerEpoch && u.Epoch != c.at+1, !c.opts.PerEpoch && u.Epoch != last:
			return fmt.Errorf("from %d to %d behind %d, the last is %d", u.From, u.Epoch, c.at, last)
		default:
			before = d.answers[u.From][c.query]
			d.met["updates"]++
		}
		c.at = u.Epoch
		c.told = append(c.told, u.Epoch)
		return checkUpdate(u, c.width, before, d.answers[u.Epoch][c.query])
	})
	if err != nil {
		d.Fatalf("%s: %v", c.opts.Name, err)
	}
}

// ack acknowledges one of the epochs that were told.
func (d *durable) ack(c *consumer) {
	d.Helper()
	if c.sub == nil || len(c.told) == 0 {
		return
	}
	i := d.rng.IntN(len(c.told))
	d.acks(c.sub, c.told[i])
	c.acked, c.whole = c.told[i], false
	c.told = c.told[i+1:]
	d.met["acks"]++
}

// leave closes the subscription.
func (d *durable) leave(c *consumer) {
	if c.sub != nil {
		_ = c.sub.Close() // always nil
		c.sub = nil
	}
}

// restart opens the store again, behind Close or as a crash has left it.
func (d *durable) restart() {
	d.Helper()
	if d.rng.IntN(2) == 0 {
		to := filepath.Join(d.copies, fmt.Sprint(d.met["crashes"]))
		if err := os.CopyFS(to, os.DirFS(d.dir)); err != nil {
			d.Fatal(err)
		}
		d.dir = to
		d.met["crashes"]++
	} else {
		d.met["reopened"]++
	}
	for _, c := range d.all {
		d.leave(c)
	}
	before := d.epoch()
	d.reopen(d.dir, d.options())
	if d.epoch() != before {
		d.Fatalf("epoch %d after %d", d.epoch(), before)
	}
	if d.db.Recovery().Passed > 0 {
		d.met["from before a checkpoint"]++
	}
	for _, info := range d.db.Subscribers() {
		i := slices.IndexFunc(d.all, func(c *consumer) bool { return c.opts.Name == info.Name })
		if info.Epoch != d.all[i].acked || info.Lost != "" {
			d.Fatalf("%+v, acknowledged was %d", info, d.all[i].acked)
		}
	}
}

func (d *durable) step() {
	c := d.all[d.rng.IntN(len(d.all))]
	switch n := d.rng.IntN(60); {
	case n < 18:
		d.append(batch(d.stream.take(1+d.rng.IntN(6)), int(d.stream.next)))
		d.note()
	case n < 26:
		if c.sub == nil {
			d.attach(c)
		}
	case n < 40:
		d.take(c)
	case n < 50:
		d.ack(c)
	case n < 52:
		d.leave(c)
	case n < 58:
		d.checkpoint()
	default:
		d.restart()
	}
}

// Whatever happens to a store and to its subscribers, one that has a name is told
// every epoch behind what it has acknowledged once, and what it is told amounts to
// what an enumeration gives.
func TestNameDifferential(t *testing.T) {
	t.Parallel()
	met := map[string]int{}
	seeds := 2
	if os.Getenv(fullVar) != "" {
		seeds = 100
	}
	for seed := range seeds {
		base := t.TempDir()
		d := &durable{
			rng: rand.New(rand.NewPCG(uint64(seed), 77)), dir: filepath.Join(base, "first"), copies: base,
			stream: newStream(), answers: map[triegs.Epoch]map[string]printed{}, widths: map[string]int{}, met: met,
		}
		d.world = newWorld(t, d.dir, d.options())
		for i, text := range crashQueries[:4] {
			name := fmt.Sprintf("q%d", i)
			d.widths[name] = len(d.register(name, text).Columns())
			d.all = append(d.all, &consumer{query: name, width: d.widths[name], opts: triegs.SubscribeOptions{
				Name: "of " + name, PerEpoch: i%2 == 0, Mode: []triegs.SubscribeMode{triegs.Follow, triegs.SnapshotFirst}[i/2],
			}})
		}
		d.note()
		for range scaled(400, 250) {
			d.step()
		}
		for _, c := range d.all { // all come to the end
			if c.sub == nil {
				d.attach(c)
			}
			for c.at < d.epoch() {
				d.take(c)
			}
			d.leave(c)
		}
	}
	for what, least := range map[string]int{"updates": 100, "acks": 20, "crashes": 3, "reopened": 3, "from before a checkpoint": 5, "whole": 3} {
		if met[what] < least {
			t.Errorf("%s: %d times, want %d", what, met[what], least)
		}
	}
	t.Log(met)
}
