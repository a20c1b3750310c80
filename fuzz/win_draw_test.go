package fuzz

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
)

// winDrawer draws a case with a model beside it, so that most of what it draws
// means something in the state in which it comes.
type winDrawer struct {
	r         *rand.Rand
	c         *winCase
	m         *winModel
	domain    []string
	relations []string
	arity     map[string]int
	fits      map[string][]oracle.Atom
	ids       int
	now       int64
	wall      int64
	used      []oracle.Event // that had an ID
	unit      int64          // of steps of time
	limit     int64          // the latest time to draw
	// annotated cases have queries with any head, aggregates and semirings; the
	// terms of columns and the values of relations are then such as these can read.
	annotated bool
	columns   map[string][]string
	values    map[string][]string
}

// oneOf draws an element.
func oneOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// percent is true in so many of a hundred draws.
func percent(r *rand.Rand, n int) bool { return r.IntN(100) < n }

// drawWin draws a case from a seed.
func drawWin(seed uint64, eventTime bool, steps int) *winCase {
	return drawWinFrom(rand.New(rand.NewPCG(seed, 0x3171)), seed, eventTime, false, steps)
}

// choices puts the bytes of a fuzzer into the high bits of a draw, which are the
// ones that a bounded draw looks at, and goes on with a fixed sequence.
type choices struct {
	data []byte
	rest *rand.PCG
}

// Uint64 gives the next draw.
func (c *choices) Uint64() uint64 {
	u := c.rest.Uint64()
	if len(c.data) == 0 {
		return u
	}
	b := c.data[0]
	c.data = c.data[1:]
	return u>>8 | uint64(b)<<56
}

// drawWinFrom draws a case; the seed chooses the queries.
func drawWinFrom(r *rand.Rand, seed uint64, eventTime, annotated bool, steps int) *winCase {
	d := &winDrawer{r: r, c: &winCase{eventTime: eventTime}, arity: map[string]int{}, fits: map[string][]oracle.Atom{}, annotated: annotated}
	d.m = newWinModel(d.c)
	// Times anywhere in int64, with room for the whole case.
	room := int64(steps) * 400
	d.unit = oneOf(r, int64(1), 1, 1, 7, 1_000_000_000)
	// A slide has no step before the first that int64 holds.
	d.now = oneOf(r, int64(0), 0, -50, 1_700_000_000_000_000_000, math.MinInt64+30*d.unit, math.MaxInt64-room*d.unit-1)
	d.limit = math.MaxInt64 - 100*d.unit
	if eventTime {
		d.c.sources, d.c.declared = 1+r.IntN(3), percent(r, 50)
		d.c.idle = int64(oneOf(r, 0, 0, 60))
	}
	d.c.lateness = int64(oneOf(r, 0, 0, 5, 20, 60)) * d.unit
	d.c.policy = oneOf(r, triegs.LateAccept, triegs.LateDrop, triegs.LateDrop, triegs.LateRefuse)
	if !eventTime && percent(r, 60) {
		d.c.lateness, d.c.policy = 0, triegs.LateAccept
	}
	d.queries(seed)
	for i := range d.c.queries {
		if i < d.c.anchors || percent(r, 60) {
			d.act(winAct{do: actRegister, query: i})
		}
	}
	for i := range steps {
		d.step(i)
	}
	return d.c
}

// act adds a step, and makes it in the model.
func (d *winDrawer) act(a winAct) {
	d.wall += d.r.Int64N(20)
	a.wall = d.wall
	d.c.acts = append(d.c.acts, a)
	_ = d.m.apply(&d.c.acts[len(d.c.acts)-1]) // a refusal is part of the case
}

// drawWindow draws a window.
func (d *winDrawer) drawWindow() (w oracle.Window) {
	switch n := d.r.IntN(100); {
	case n < 8:
		return w
	case n < 37:
		return oracle.Window{Last: oneOf(d.r, int64(1), 2, 3, 5, 9)}
	case n < 40:
		return oracle.Window{Range: math.MaxInt64} // nothing leaves
	}
	w.Range = oneOf(d.r, int64(1), 3, 5, 10, 17, 17, 30, 30, 60, 100) * d.unit
	if percent(d.r, 15) {
		w.Range = max(1, w.Range-1) // ends between the units
	}
	if percent(d.r, 35) {
		w.Slide = oneOf(d.r, int64(1), 3, 5, 10, 25) * d.unit
	}
	return w
}

// queries draws the queries and what the stream is made of.
func (d *winDrawer) queries(seed uint64) {
	size := randq.Size{Queries: queriesEach, AtomsMax: 4, Epochs: 1}
	if d.annotated {
		size.Heads, size.Aggregates, size.Semirings, size.Epochs = true, true, true, 8
	}
	drawn := randq.New(seed, size)
	if d.annotated {
		d.readable(drawn)
	}
	seen := map[string]bool{}
	for _, e := range drawn.Epochs[0].Events {
		for _, t := range e.Tuple {
			if !seen[t] {
				d.domain, seen[t] = append(d.domain, t), true
			}
		}
	}
	if len(d.domain) == 0 {
		d.domain = []string{`"a"`}
	}
	d.domain = d.domain[:min(len(d.domain), 2+d.r.IntN(3))]
	for i := range drawn.Queries {
		d.query(winQuery{Query: drawn.Queries[i]})
	}
	if d.c.eventTime {
		d.anchor()
	}
}

// readable takes from a stream what its queries can read.
func (d *winDrawer) readable(c randq.Case) {
	d.columns, d.values = map[string][]string{}, map[string][]string{}
	for _, b := range c.Epochs {
		for _, e := range b.Events {
			if e.Delete {
				continue
			}
			for i, t := range e.Tuple {
				k := column(e.Relation, i)
				d.columns[k] = append(d.columns[k], t)
			}
			if e.Value != "" {
				d.values[e.Relation] = append(d.values[e.Relation], e.Value)
			}
		}
	}
}

// column names a column of a relation.
func column(rel string, i int) string { return fmt.Sprint(rel, " ", i) }

// terms lists what stands in a column. A number can be read by every query.
func (d *winDrawer) terms(rel string, i int) []string {
	switch list := d.columns[column(rel, i)]; {
	case !d.annotated:
		return d.domain
	case len(list) > 0:
		return list
	}
	return []string{triegs.Int(1).String()}
}

// query gives a query its windows.
func (d *winDrawer) query(q winQuery) {
	q.Window = d.drawWindow()
	own := percent(d.r, 50) && !q.SPARQL
	q.Atoms = slices.Clone(q.Atoms)
	for i := range q.Atoms {
		a := &q.Atoms[i]
		a.Window = q.Window
		if own && percent(d.r, 50) {
			a.Window = d.drawWindow()
		}
		if d.arity[a.Relation] == 0 {
			d.relations = append(d.relations, a.Relation)
		}
		d.arity[a.Relation] = len(a.Args)
		d.fits[a.Relation] = append(d.fits[a.Relation], *a)
	}
	bare := slices.ContainsFunc(q.Atoms, func(a oracle.Atom) bool { return a.Window == oracle.Window{} })
	q.option = q.Window.Range > 0 && !bare && percent(d.r, 30)
	d.c.queries = append(d.c.queries, q)
}

// anchor puts queries over each relation before the others, which keep at least
// as much as any of them: in event-time mode what a late event meets must not
// depend on when the others came.
func (d *winDrawer) anchor() {
	var list []winQuery
	for _, rel := range d.relations {
		windows := d.widest(rel)
		for i, w := range windows {
			q := winQuery{Query: randq.Query{Name: fmt.Sprintf("keep%d%s", i, rel), Window: w}}
			a := oracle.Atom{Relation: rel, Window: w}
			for i := range d.arity[rel] {
				v := fmt.Sprintf("x%d", i)
				a.Args, q.Head = append(a.Args, oracle.Arg{Var: v}), append(q.Head, v)
			}
			q.Atoms = []oracle.Atom{a}
			list = append(list, q)
		}
	}
	d.c.anchors = len(list)
	d.c.queries = append(list, d.c.queries...)
}

// widest are windows that together keep as much of a relation as those of all
// queries, and hardly more.
func (d *winDrawer) widest(rel string) (out []oracle.Window) {
	var span, last int64
	whole := percent(d.r, 10)
	for _, a := range d.fits[rel] {
		w := a.Window
		whole = whole || w == oracle.Window{} || w.Range == math.MaxInt64
		span, last = max(span, plus(w.Range, w.Slide)), max(last, w.Last)
	}
	switch {
	case whole:
		out = append(out, oracle.Window{})
	case span > 0:
		out = append(out, oracle.Window{Range: span})
	}
	if last > 0 {
		out = append(out, oracle.Window{Last: last})
	}
	return out
}

// step draws one step.
func (d *winDrawer) step(i int) {
	switch n := d.r.IntN(100); {
	case n < 70 || i == 0:
		d.appendStep(i)
	case n < 78:
		d.pass()
		d.act(winAct{do: actAdvance, at: d.now})
	case n < 88:
		d.queryStep()
	case n < 90 && !d.c.eventTime:
		rel := oneOf(d.r, d.relations...)
		d.act(winAct{do: actRetain, rel: rel, span: oneOf(d.r, int64(0), 5, 20, 50, 100) * d.unit})
	default:
		d.act(winAct{do: oneOf(d.r, actCheckpoint, actBeside, actReopen, actReopen, actRestore, actVerify, actVerify)})
	}
}

// queryStep registers a query that is not there, or drops one.
func (d *winDrawer) queryStep() {
	if len(d.c.queries) == d.c.anchors {
		return
	}
	i := d.c.anchors + d.r.IntN(len(d.c.queries)-d.c.anchors)
	switch {
	case !d.m.on[i]:
		d.act(winAct{do: actRegister, query: i})
	case percent(d.r, 40): // rather more of them than less
		d.act(winAct{do: actDrop, query: i})
	}
}

// pass lets some time go by.
func (d *winDrawer) pass() {
	step := int64(0)
	switch n := d.r.IntN(100); {
	case n < 30:
	case n < 86:
		step = d.r.Int64N(4) * d.unit
	case n < 98:
		step = d.r.Int64N(30) * d.unit
	default:
		step = 300 * d.unit // everything is gone
	}
	if percent(d.r, 5) {
		step++ // between the units
	}
	d.now = min(d.now+step, d.limit)
}

// plus adds to a time within int64.
func plus(t, d int64) int64 {
	switch {
	case d > 0 && t > math.MaxInt64-d:
		return math.MaxInt64
	case d < 0 && t < math.MinInt64-d:
		return math.MinInt64
	}
	return t + d
}

// appendStep draws a batch.
func (d *winDrawer) appendStep(i int) {
	d.pass()
	n := 1 + d.r.IntN(2*len(d.relations)+2)
	if i == 0 {
		n = 6 * len(d.relations)
	}
	a := winAct{do: actAppend, at: d.now, ignore: percent(d.r, 60)}
	a.untimed = !d.c.eventTime && percent(d.r, 10)
	if d.c.eventTime {
		a.source = d.r.IntN(d.c.sources)
		if percent(d.r, 5) {
			a.source = d.c.sources // the one without a name
		}
		a.silent = percent(d.r, 30)
		if percent(d.r, 15) {
			a.again = 1 + d.r.IntN(4)
			if percent(d.r, 20) {
				n = 0
			}
		}
		if percent(d.r, 30) { // a source that is behind
			a.at = plus(d.now, -d.r.Int64N(30)*d.unit)
		}
	}
	state := d.m.state().Clone()
	for range n {
		e := d.event(state)
		if _, err := state.Apply([]oracle.Event{e}, false); err != nil && !a.ignore && !d.c.eventTime && percent(d.r, 70) {
			continue // most batches are not refused
		}
		a.events = append(a.events, e)
	}
	d.act(a)
}

// when draws an event time around now.
func (d *winDrawer) when() int64 {
	var off int64
	switch n := d.r.IntN(100); {
	case n < 25:
	case n < 75:
		off = d.r.Int64N(12) - 8
	case n < 85:
		off = -d.r.Int64N(120)
	case n < 95:
		off = d.r.Int64N(40)
	default:
		off = oneOf(d.r, int64(-400), -10, -5, -30, 5, 10)
	}
	// The least time is that of a store without one, and before every step.
	return max(plus(d.now, off*d.unit), math.MinInt64+1)
}

// winMost bounds the live contributions to a relation, for the oracle's sake.
const winMost = 18

// event draws an event against a state.
func (d *winDrawer) event(state *oracle.Store) oracle.Event {
	e := oracle.Event{Relation: oneOf(d.r, d.relations...), Time: d.when()}
	live := state.Live()
	inserts := 80
	count := 0
	for _, l := range live {
		if l.Relation == e.Relation {
			count++
		}
	}
	if count >= winMost {
		inserts = 15
	}
	e.Tuple = d.tuple(e.Relation)
	switch {
	case len(live) > 0 && !percent(d.r, inserts):
		return d.retraction(oneOf(d.r, live...), e.Time)
	case len(d.used) > 0 && percent(d.r, 8): // an ID that may be live or gone
		e.ID = oneOf(d.r, d.used...).ID
	case len(d.used) > 0 && percent(d.r, 14): // a refresh, if it lives
		old := oneOf(d.r, append(named(live), oneOf(d.r, d.used...))...)
		e.Relation, e.Tuple, e.ID = old.Relation, old.Tuple, old.ID
		if percent(d.r, 30) { // to a time that no window holds any more
			e.Time = max(plus(d.now, -d.r.Int64N(150)*d.unit), math.MinInt64+1)
		}
	case len(live) > 0 && percent(d.r, 30): // a copy
		old := oneOf(d.r, live...)
		e.Relation, e.Tuple = old.Relation, old.Tuple
	}
	if e.ID == "" && percent(d.r, 35) {
		d.ids++
		e.ID = fmt.Sprintf("e%d", d.ids)
	}
	if e.ID != "" {
		d.used = append(d.used, e)
	}
	switch values := d.values[e.Relation]; {
	case !d.annotated && percent(d.r, 25):
		e.Value = triegs.Int(int64(1 + d.r.IntN(3))).String()
	case len(values) > 0 && percent(d.r, 80):
		e.Value = oneOf(d.r, values...)
	}
	return e
}

// named are the contributions that have an ID.
func named(live []oracle.Event) (out []oracle.Event) {
	for _, e := range live {
		if e.ID != "" {
			out = append(out, e)
		}
	}
	return out
}

// retraction retracts like the given contribution, by its ID, its fact or its
// fact and value, or now and then what may not be there.
func (d *winDrawer) retraction(of oracle.Event, at int64) oracle.Event {
	e := oracle.Event{Delete: true, Relation: of.Relation, Tuple: of.Tuple, Time: at}
	switch {
	case percent(d.r, 10):
		e.Tuple = d.tuple(of.Relation)
	case of.ID != "" && percent(d.r, 50), len(d.used) > 0 && percent(d.r, 10):
		if of.ID == "" {
			of = oneOf(d.r, d.used...)
			e.Relation, e.Tuple = of.Relation, of.Tuple
		}
		e.ID = of.ID
		if percent(d.r, 50) {
			e.Relation, e.Tuple = "", nil
		}
	case of.Value != "" && percent(d.r, 50):
		e.Value = of.Value
	}
	return e
}

// tuple draws a tuple, often one that fits an atom.
func (d *winDrawer) tuple(rel string) []string {
	out := make([]string, d.arity[rel])
	for i := range out {
		list := d.terms(rel, i)
		out[i] = list[min(d.r.IntN(len(list)), d.r.IntN(len(list)))]
	}
	if percent(d.r, 50) {
		bound := map[string]string{}
		for i, arg := range oneOf(d.r, d.fits[rel]...).Args {
			want := arg.Const
			if arg.Var != "" {
				want = bound[arg.Var]
			}
			switch {
			case want == "":
				bound[arg.Var] = out[i]
			case !d.annotated || slices.Contains(d.terms(rel, i), want):
				out[i] = want
			}
		}
	}
	return out
}
