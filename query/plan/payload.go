package plan

import (
	"fmt"

	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/semiring"
)

// The algebras that stand behind aggregates (semiring.Parse).
const (
	algebraSum      = "sum"
	algebraMin      = "min"
	algebraMax      = "max"
	algebraDistinct = "distinct"
)

// The semirings that need no track: multiplicities and presence are kept anyway.
const (
	semiringCount = "count"
	semiringBool  = "bool"
)

// setPayload decides what is computed for each answer, and which aliases lift
// which columns for it.
func (p *Plan) setPayload() error {
	q := p.Query
	switch {
	case len(q.Aggregates) > 0:
		return p.aggregate()
	case q.Semiring == "" || q.Semiring == semiringCount || q.Semiring == semiringBool:
		if !p.annotated() {
			p.Payload.Counted = !q.Distinct && q.Semiring != semiringBool
			return nil
		}
	}
	name := q.Semiring
	switch {
	case q.Distinct:
		name = semiringBool
	case name == "":
		name = semiringCount
	}
	p.Payload.Tracks = []Track{{Algebra: name, Everywhere: true}}
	p.Payload.Outputs = []Output{{Track: 0}}
	for i := range p.Aliases {
		a := &p.Aliases[i]
		if q.Atoms[a.Atom].Annotated {
			a.Valued = true
			a.Lifts = append(a.Lifts, Lift{Track: 0, Col: a.Arity})
		}
	}
	return nil
}

// annotated reports whether the values of contributions are read.
func (p *Plan) annotated() bool {
	for i := range p.Query.Atoms {
		if p.Query.Atoms[i].Annotated {
			return true
		}
	}
	return false
}

// aggregate gives each aggregate its track. What takes repeated values once needs
// no numbers of valuations; everything else is weighted by them.
func (p *Plan) aggregate() error {
	type lifted struct {
		algebra string
		v       query.Var
	}
	tracks := make(map[lifted]int)
	for i := range p.Query.Aggregates {
		g := &p.Query.Aggregates[i]
		out := Output{Track: -1, Average: g.Func == query.Avg}
		if g.Func != query.Count {
			alias, col := p.holder(g.Var)
			if alias < 0 {
				return g.Pos.Syntax("aggregated variable %s occurs in no atom", p.varName(g.Var))
			}
			l := lifted{algebraOf(g), g.Var}
			t, ok := tracks[l]
			if !ok {
				t = len(p.Payload.Tracks)
				tracks[l] = t
				p.Payload.Tracks = append(p.Payload.Tracks, Track{Algebra: l.algebra})
				p.Aliases[alias].Lifts = append(p.Aliases[alias].Lifts, Lift{Track: t, Col: col})
			}
			out.Track = t
		}
		if out.Track < 0 || out.Average {
			p.Payload.Counted = true
		} else if k, _ := p.Payload.Tracks[out.Track].traits(); !k.Idempotent {
			p.Payload.Counted = true
		}
		p.Payload.Outputs = append(p.Payload.Outputs, out)
	}
	return nil
}

// traits are those of the algebra of a track, ok false when it is one of the user,
// which are not known here.
func (t *Track) traits() (traits semiring.Traits, ok bool) {
	a, err := semiring.Parse(t.Algebra, semiring.Env{Terms: noTerms{}})
	if err != nil {
		return semiring.Traits{}, false
	}
	return a.Traits(), true
}

// noTerms is what an algebra that only has to tell its traits asks for nothing.
type noTerms struct{}

// Term returns no term.
func (noTerms) Term(uint64) term.Term { return term.Term{} }

// algebraOf names the algebra of an aggregate other than count().
func algebraOf(g *query.Aggregate) string {
	switch g.Func {
	case query.Min:
		return algebraMin
	case query.Max:
		return algebraMax
	case query.CountDistinct:
		return algebraDistinct
	case query.TopK:
		return fmt.Sprintf("top(%d)", g.K)
	default: // sum and avg
		return algebraSum
	}
}
