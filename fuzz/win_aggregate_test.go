package fuzz

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// aggregateQuery is a grouped query twice: as text, and as what is recomputed.
type aggregateQuery struct {
	text  string
	sees  joinAtom // the label and the window
	group func(r *streamRow) []string
	of    func(r *streamRow) string // the attribute that is counted distinct
	// columns are the aggregates by the names of the recomputation, in the order
	// of the text.
	columns []string
}

// aggregateStream is a stream with queries over it, whose rows become facts that
// hold the value of the line as an attribute.
type aggregateStream struct {
	name    string
	file    string
	most    int // rows of a batch; 0 = those of one time
	number  func(value string) triegs.Term
	queries []aggregateQuery
}

// windowGroup is a group while it is recomputed. All numbers are exact.
type windowGroup struct {
	n         int64
	sum       *big.Rat
	least     *big.Rat
	greatest  *big.Rat
	different map[string]bool
	whole     bool // every number is an integer
}

func (g *windowGroup) add(of string, value triegs.Term) {
	g.n++
	g.different[of] = true
	x := new(big.Rat)
	if i, ok := value.AsInt(); ok {
		x.SetInt64(i)
	} else if f, ok := value.AsFloat(); ok {
		x.SetFloat64(f)
		g.whole = false
	} else {
		return // the stream has no numbers
	}
	g.sum.Add(g.sum, x)
	if g.least == nil || x.Cmp(g.least) < 0 {
		g.least = x
	}
	if g.greatest == nil || x.Cmp(g.greatest) > 0 {
		g.greatest = x
	}
}

// number writes a sum, or a number of the stream, as the engine's values are
// written.
func (g *windowGroup) number(x *big.Rat) string {
	if g.whole {
		return x.Num().String()
	}
	f, _ := x.Float64()
	return fmt.Sprint(f)
}

func (g *windowGroup) column(name string) string {
	switch name {
	case "count":
		return fmt.Sprint(g.n)
	case "different":
		return fmt.Sprint(len(g.different))
	case "sum":
		return g.number(g.sum)
	case "least":
		return g.number(g.least)
	case "greatest":
		return g.number(g.greatest)
	case "mean": // of integers rounded once, else that of the rounded sum
		mean, _ := new(big.Rat).Quo(g.sum, big.NewRat(g.n, 1)).Float64()
		if sum, _ := g.sum.Float64(); !g.whole {
			mean = sum / float64(g.n)
		}
		return fmt.Sprint(mean)
	}
	return "?"
}

// recompute gives the columns of each group from the rows that have come.
func (q *aggregateQuery) recompute(s *aggregateStream, rows []streamRow, now int64) map[string]string {
	groups := map[string]*windowGroup{}
	for _, r := range q.sees.seen(rows, now) {
		for _, k := range q.group(&r) {
			g := groups[k]
			if g == nil {
				g = &windowGroup{sum: new(big.Rat), different: map[string]bool{}, whole: true}
				groups[k] = g
			}
			g.add(q.of(&r), s.number(r.value))
		}
	}
	out := map[string]string{}
	for k, g := range groups {
		var columns []string
		for _, name := range q.columns {
			columns = append(columns, g.column(name))
		}
		out[k] = strings.Join(columns, " ")
	}
	return out
}

// read gives the same of the engine.
func (q *aggregateQuery) read(w *world, s *triegs.Snapshot) map[string]string {
	w.Helper()
	name, _, _ := strings.Cut(q.text, "(")
	out := map[string]string{}
	for row, err := range s.Answers(name) {
		if err != nil {
			w.Fatal(err)
		}
		var columns []string
		for i := range q.columns {
			v := row.Value(i)
			if term, ok := v.(triegs.Term); ok {
				v = numberOf(term)
			}
			columns = append(columns, fmt.Sprint(v))
		}
		key := row.Term(0).Lexical()
		if _, twice := out[key]; twice {
			w.Fatalf("%s: %s comes twice", name, key)
		}
		out[key] = strings.Join(columns, " ")
	}
	return out
}

// numberOf is the int64 or float64 of a term.
func numberOf(t triegs.Term) any {
	if i, ok := t.AsInt(); ok {
		return i
	}
	f, _ := t.AsFloat()
	return f
}

// events makes facts of rows; those of static edges are pairs.
func (s *aggregateStream) events(rows []streamRow) (out []triegs.Event) {
	for _, r := range rows {
		e := triegs.Event{Relation: r.label, Tuple: []triegs.Term{r.srcT, r.dstT}, Time: time.Unix(0, r.at)}
		if v := s.number(r.value); r.at > 0 && v != (triegs.Term{}) {
			e.Tuple = append(e.Tuple, v)
		}
		out = append(out, e)
	}
	return out
}

// play feeds the stream and compares all queries thirty times. In event-time mode
// the rows of a batch come in disorder.
func (s *aggregateStream) play(t *testing.T, eventTime bool) {
	const samples = 30
	source := realStream{files: []string{s.file}, most: s.most, static: func(r *streamRow) bool { return r.at == 0 }}
	before, batches := source.load(t)
	w := newWorld(t, "", &triegs.Options{Clock: still, Tick: -1, EventTime: eventTime})
	for _, q := range s.queries {
		name, _, _ := strings.Cut(q.text, "(")
		w.register(name, q.text)
	}
	r := rand.New(rand.NewPCG(6, 6))
	offset := uint64(0)
	feed := func(rows []streamRow, at int64) {
		b := triegs.Batch{Time: time.Unix(0, at)}
		if eventTime {
			rows = slices.Clone(rows)
			disorder(r, rows)
			b = triegs.Batch{Source: "s", Offset: offset, Watermark: time.Unix(0, at)}
			offset += uint64(len(rows))
		}
		b.Events = s.events(rows)
		w.append(b)
	}
	if len(before) > 0 {
		feed(before, 0)
	}
	come := slices.Clone(before)
	compared, groups := 0, 0
	for i, rows := range batches {
		at := rows[len(rows)-1].at
		come = append(come, rows...)
		feed(rows, at)
		if (i+1)*samples/len(batches) == i*samples/len(batches) {
			continue
		}
		compared++
		snap := w.snapshot()
		for _, q := range s.queries {
			got, want := q.read(w, snap), q.recompute(s, come, at)
			if !maps.Equal(got, want) {
				t.Fatalf("%s at %s: %s", q.text, time.Unix(0, at).UTC(), firstOther(got, want))
			}
			groups += len(want)
		}
		snap.Close()
	}
	m := w.db.Metrics()
	t.Logf("%d rows in %d batches, %d states compared with %d groups, %d expired", len(come), len(batches), compared, groups, m.Expired)
	if groups == 0 || m.Expired == 0 {
		t.Error("this shows nothing")
	}
}

// firstOther names the least key with different values.
func firstOther[V cmp.Ordered](got, want map[string]V) string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(want)), maps.Keys(got))
	slices.Sort(keys)
	for _, k := range keys {
		g, here := got[k]
		if v, there := want[k]; g != v || here != there {
			return fmt.Sprintf("%q is %v (there: %v), want %v (there: %v); %d groups, want %d", k, g, here, v, there, len(got), len(want))
		}
	}
	return "no difference"
}

// Aggregates over windows of real streams are what a recomputation gives over the
// rows that the window holds, with exact numbers: also sums of floats do not drift
// as rows come and expire.
func TestWindowAggregates(t *testing.T) {
	const day = 24 * time.Hour
	target := func(r *streamRow) []string { return []string{r.dst} }
	source := func(r *streamRow) string { return r.src }
	traffic := joinAtom{label: "avgSpeed", span: 15 * time.Minute, slide: 5 * time.Minute}
	ends := map[string][]string{}
	for _, r := range readStream(t, "citybench-traffic") {
		if r.label == "endsAt" {
			ends[r.src] = append(ends[r.src], r.dst)
		}
	}
	for _, s := range []aggregateStream{
		{"messages", "collegemsg", 40, func(string) triegs.Term { return triegs.Term{} }, []aggregateQuery{{
			"sending(a, count(), count(distinct b)) :- sent(a, b) window 24h.",
			joinAtom{label: "sent", span: day}, func(r *streamRow) []string { return []string{r.src} },
			func(r *streamRow) string { return r.dst }, []string{"count", "different"},
		}}},
		{"ratings", "bitcoin-otc", 25, wholeNumber, []aggregateQuery{{
			"rated(b, avg(r), min(r), max(r), sum(r), count()) :- rates(_, b, r) window 30d.",
			joinAtom{label: "rates", span: 30 * day}, target, source, []string{"mean", "least", "greatest", "sum", "count"},
		}, {
			"newest(b, avg(r), min(r), max(r), count(distinct a)) :- rates(a, b, r) last 1000.",
			joinAtom{label: "rates", last: 1000}, target, source, []string{"mean", "least", "greatest", "different"},
		}}},
		{"traffic", "citybench-traffic", 0, metresPerSecond, []aggregateQuery{{
			"speed(s, avg(v), sum(v), min(v), max(v)) :- avgSpeed(_, s, v) window 15m slide 5m.",
			traffic, target, source, []string{"mean", "sum", "least", "greatest"},
		}, {
			"arriving(p, avg(v), max(v), count(), count(distinct s)) :- avgSpeed(_, s, v)[15m slide 5m], endsAt(s, p).",
			traffic, func(r *streamRow) []string { return ends[r.dst] },
			func(r *streamRow) string { return r.dst }, []string{"mean", "greatest", "count", "different"},
		}}},
	} {
		for _, eventTime := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, event time %v", s.name, eventTime), func(t *testing.T) { s.play(t, eventTime) })
		}
	}
}

// wholeNumber is a value as an integer, absent where there is none.
func wholeNumber(value string) triegs.Term {
	i, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return triegs.Term{}
	}
	return triegs.Int(i)
}

// metresPerSecond turns km/h into what no float is exactly.
func metresPerSecond(value string) triegs.Term {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return triegs.Term{}
	}
	return triegs.Float(f / 3.6)
}
