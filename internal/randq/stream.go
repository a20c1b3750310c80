package randq

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/triegs/triegs/internal/oracle"
)

// Batch is what is appended as one epoch.
type Batch struct {
	Events        []oracle.Event
	IgnoreMissing bool
}

// Case is a list of queries over one stream.
type Case struct {
	Queries []Query
	Epochs  []Batch
}

// Size bounds a case.
type Size struct {
	Queries  int // queries over the stream
	AtomsMax int // atoms of a query
	Epochs   int // batches of the stream, refused ones included
	// Windows gives queries and atoms windows, over event times that go about 10
	// on with each epoch. Without it the cases of a seed are what they were.
	Windows bool
	// Heads gives most queries a head that is any subset of their variables, so
	// that they are of any acyclic class. Without it they are full.
	Heads bool
	// Aggregates gives half of the queries aggregates, and the last columns of some
	// relations nothing but numbers. They want Heads to be of any interest.
	Aggregates bool
	// Semirings gives queries semirings and annotated atoms, and most contributions
	// a value: all those to one relation are values of a kind that each semiring
	// over the relation can read.
	Semirings bool
	// Huge makes many of these values and numbers so large that sums
	// and products of them do not fit.
	Huge bool
}

// answersMax is about how many valuations a query should have on average, so
// that the nested loops of the oracle stay affordable.
const answersMax = 1000

// annotatedMax is the same where valuations may be listed in an annotation.
const annotatedMax = 400

// New draws a case from a seed.
func New(seed uint64, size Size) Case {
	return draw(rand.New(rand.NewPCG(seed, 0x7431)), size)
}

// FromBytes draws a case whose choices follow data, one byte a choice, and then
// a fixed sequence. A small change of data changes few choices.
func FromBytes(data []byte, size Size) Case {
	return draw(rand.New(&byteSource{data, rand.NewPCG(1, 2)}), size)
}

// byteSource puts the bytes of a fuzzer into the high bits, which are the ones
// that a bounded draw looks at.
type byteSource struct {
	data []byte
	rest *rand.PCG
}

// Uint64 gives the next draw.
func (s *byteSource) Uint64() uint64 {
	u := s.rest.Uint64()
	if len(s.data) == 0 {
		return u
	}
	b := s.data[0]
	s.data = s.data[1:]
	return u>>8 | uint64(b)<<56
}

// draw makes the queries, and a stream that is dense enough for them to have
// answers and thin enough for these to be few.
func draw(r *rand.Rand, size Size) Case {
	domain := make([]string, 3+r.IntN(4))
	for i := range domain {
		domain[i] = pick(r, terms)
	}
	in := schema{domain: domain}
	valuations := float64(answersMax)
	if size.Aggregates {
		from := someNumbers
		if size.Huge {
			from = hugeNumbers
		}
		for range 2 + r.IntN(3) {
			in.numbers = append(in.numbers, pick(r, from))
		}
	}
	if size.Semirings {
		from := kinds
		if size.Huge {
			from = hugeKinds
		}
		in.kinds, valuations = drawKinds(r, from), annotatedMax
	}
	var c Case
	atoms := map[string][]oracle.Atom{}
	perRelation := 32
	for i := range size.Queries {
		q := newQuery(r, fmt.Sprintf("q%d", i), size, in)
		if size.Windows {
			q.addWindows(r)
		}
		c.Queries = append(c.Queries, q)
		perRelation = min(perRelation, density(&q, len(domain), valuations))
		for _, a := range q.Atoms {
			atoms[a.Relation] = append(atoms[a.Relation], a)
		}
	}
	s := &stream{r: r, schema: in, atoms: atoms, perRelation: perRelation}
	for _, rel := range relations { // in a fixed order
		if len(atoms[rel]) > 0 || chance(r, 10) {
			s.relations = append(s.relations, rel)
		}
	}
	for i := range size.Epochs {
		c.Epochs = append(c.Epochs, s.batch(i))
	}
	return c
}

// density gives the number of facts a relation that leaves q with at most so many
// valuations on average: each atom offers all facts, and each
// further occurrence of a variable, and each constant, keeps one of the domain.
func density(q *Query, domain int, valuations float64) int {
	seen := map[string]bool{}
	cuts := 0.0
	for _, a := range q.Atoms {
		for _, arg := range a.Args {
			if arg.Var == "" || seen[arg.Var] {
				cuts++
			}
			seen[arg.Var] = true
		}
	}
	// The draw is skewed, so that a cut keeps more than one of the domain.
	keep := math.Pow(float64(domain)*0.7, cuts)
	n := 2
	for n < 32 && math.Pow(float64(n+1), float64(len(q.Atoms)))/keep <= valuations {
		n++
	}
	return n
}

// stream draws events against the contributions that are live.
type stream struct {
	schema
	r           *rand.Rand
	relations   []string
	atoms       map[string][]oracle.Atom // of the queries, by relation
	perRelation int
	live        oracle.Store
	ids         int
}

// batch draws the events of one epoch. A few batches hold a retraction of what
// is not there, and a few of these ask for it to be skipped.
func (s *stream) batch(epoch int) Batch {
	n := 1 + s.r.IntN(5)
	switch {
	case epoch == 0:
		n = s.perRelation * len(s.relations) / 2
	case chance(s.r, 8):
		n = 20
	}
	var b Batch
	before := s.live.Clone()
	if epoch > 0 && chance(s.r, 4) {
		b.Events = s.clear()
	}
	for range n {
		b.Events = append(b.Events, s.events(epoch)...)
	}
	if !chance(s.r, 6) {
		return b
	}
	bad := oracle.Event{Delete: true, ID: "never"}
	if chance(s.r, 50) {
		bad = oracle.Event{Delete: true, Relation: pick(s.r, s.relations), Value: integer(99)}
		bad.Tuple = s.tuple(bad.Relation)
	}
	b.Events = slices.Insert(b.Events, s.r.IntN(len(b.Events)+1), bad)
	b.IgnoreMissing = chance(s.r, 50)
	if !b.IgnoreMissing {
		s.live = *before
	}
	return b
}

// events draws one event, or an insertion together with its retraction.
func (s *stream) events(epoch int) []oracle.Event {
	rel := pick(s.r, s.relations)
	inserts := 70
	if s.count(rel) >= s.perRelation {
		inserts = 25
	}
	live := s.live.Live()
	switch {
	case len(live) > 0 && !chance(s.r, inserts):
		return s.apply(s.retraction(pick(s.r, live)))
	case chance(s.r, 8):
		e := s.insertion(rel, epoch)
		out := s.apply(e)
		return append(out, s.apply(s.retraction(e))...)
	case len(live) > 0 && chance(s.r, 8):
		e := pick(s.r, live)
		out := s.apply(s.retraction(e))
		e.ID = ""
		return append(out, s.apply(e)...)
	}
	return s.apply(s.insertion(rel, epoch))
}

// apply adds an event to what is live.
func (s *stream) apply(e oracle.Event) []oracle.Event {
	if _, err := s.live.Apply([]oracle.Event{e}, false); err != nil {
		panic(fmt.Sprintf("randq: drew an event that cannot apply: %v", err))
	}
	return []oracle.Event{e}
}

// insertion draws a new contribution, sometimes to a fact that is there, or the
// refresh of one that has an ID.
func (s *stream) insertion(rel string, epoch int) oracle.Event {
	e := oracle.Event{Relation: rel, Tuple: s.tuple(rel), Time: int64(epoch*10 + s.r.IntN(20) - 15)}
	live := s.live.Live()
	if len(live) > 0 && chance(s.r, 25) {
		old := pick(s.r, live)
		e.Relation, e.Tuple = old.Relation, old.Tuple
		if old.ID != "" && chance(s.r, 30) {
			e.ID = old.ID
		}
	}
	if e.ID == "" && chance(s.r, 30) {
		s.ids++
		e.ID = fmt.Sprintf("e%d", s.ids)
	}
	switch {
	case s.kinds == nil && chance(s.r, 25):
		e.Value = integer(1 + s.r.IntN(3))
	case s.kinds != nil && chance(s.r, 80):
		e.Value = pick(s.r, s.kinds[e.Relation].values)
	}
	return e
}

// retraction names a live contribution by its ID, by its value, or by its fact.
func (s *stream) retraction(of oracle.Event) oracle.Event {
	e := oracle.Event{Delete: true, Relation: of.Relation, Tuple: of.Tuple}
	switch {
	case of.ID != "" && chance(s.r, 50):
		e.ID = of.ID
		if chance(s.r, 50) {
			e.Relation, e.Tuple = "", nil
		}
	case of.Value != "" && chance(s.r, 50):
		e.Value = of.Value
	}
	return e
}

// clear retracts every contribution to one relation.
func (s *stream) clear() (out []oracle.Event) {
	rel := pick(s.r, s.relations)
	for _, e := range s.live.Live() {
		if e.Relation == rel {
			out = append(out, s.apply(oracle.Event{Delete: true, Relation: rel, Tuple: e.Tuple})...)
		}
	}
	return out
}

// tuple draws terms with a skew: the first of the domain are the hubs. Often it
// is made to fit an atom, because few tuples hit the constants and the repeated
// variables of one by themselves.
func (s *stream) tuple(rel string) []string {
	t := make([]string, arities[rel])
	for i := range t {
		from := s.column(rel, i)
		t[i] = from[min(s.r.IntN(len(from)), s.r.IntN(len(from)))]
	}
	if fit := s.atoms[rel]; len(fit) > 0 && chance(s.r, 50) {
		bound := map[string]string{}
		for i, arg := range pick(s.r, fit).Args {
			want := arg.Const
			if arg.Var != "" {
				want = bound[arg.Var]
			}
			switch {
			case want == "":
				bound[arg.Var] = t[i]
			case s.numbers == nil || !numberColumn(rel, i) || slices.Contains(s.numbers, want):
				t[i] = want
			}
		}
	}
	return t
}

// count is the number of live contributions to a relation.
func (s *stream) count(rel string) (n int) {
	for _, e := range s.live.Live() {
		if e.Relation == rel {
			n++
		}
	}
	return n
}
