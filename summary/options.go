package summary

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triegs/triegs"
)

// Annotation stands for the annotation of an answer among the columns of a query
// with a semiring.
const Annotation = "@"

// Aggregate is what is told of a group.
type Aggregate struct {
	kind   kind
	column string
}

type kind uint8

const (
	count kind = iota + 1
	sum
	avg
	least
	most
)

var kindNames = [...]string{count: "count", sum: "sum", avg: "avg", least: "min", most: "max"}

// Count is the number of answers.
func Count() Aggregate { return Aggregate{kind: count} }

// Sum is the sum of a column of numbers.
func Sum(column string) Aggregate { return Aggregate{sum, column} }

// Avg is the average of a column of numbers.
func Avg(column string) Aggregate { return Aggregate{avg, column} }

// Min is the least term of a column.
func Min(column string) Aggregate { return Aggregate{least, column} }

// Max is the greatest term of a column.
func Max(column string) Aggregate { return Aggregate{most, column} }

// String writes an aggregate as a query does: "sum(a)".
func (a Aggregate) String() string {
	if a.kind == 0 {
		return "none"
	}
	return kindNames[a.kind] + "(" + a.column + ")"
}

// Options say what a summary tells of which groups.
type Options struct {
	// GroupBy are the columns whose terms make a group: output variables, aggregates
	// that are one value, or Annotation. Without any all answers are one group.
	GroupBy []string
	// Aggregates are told of each group, in this order; at least one.
	Aggregates []Aggregate
	// Distinct counts each answer once, whatever its multiplicity.
	Distinct bool

	// Expiry is when an answer leaves the summary; false is never. It depends on the
	// output variables of the row alone, and gives the same for the same ones. Default
	// nil: answers leave with their query only.
	Expiry func(*triegs.Row) (time.Time, bool)
	// Times are output variables that hold times, instead of Expiry: an answer leaves
	// when the least of them is Range ago, as a fact leaves a window.
	Times []string
	// Range is how long an answer stays, above 0 with Times.
	Range time.Duration
}

// source is where the term of a column comes from.
type source struct {
	from from
	i    int
}

type from uint8

const (
	fromOutput from = iota
	fromValue       // aggregate i, or the annotation
)

// layout is what Options mean for a query.
type layout struct {
	columns  []string // of the query
	bag      bool     // answers count with their multiplicity
	group    []source
	measured []measure
	told     []told
	times    []int // output columns
	span     int64 // ns
	expiry   func(*triegs.Row) (time.Time, bool)
}

// measure is a column that aggregates read.
type measure struct {
	name        string
	of          source
	sums, order bool // what is kept of it
}

// told is an aggregate with the measure it reads, if any.
type told struct {
	kind    kind
	measure int
}

// plan reads options for a query, and reports all that is wrong with them.
func plan(q *triegs.Query, opts Options) (*layout, error) {
	if q == nil {
		return nil, fmt.Errorf("%w: a summary of no query", triegs.ErrValue)
	}
	p := planner{q: q, l: &layout{columns: q.Columns(), expiry: opts.Expiry}}
	p.l.bag = !opts.Distinct && q.Aggregates() == 0 && q.Semiring() == ""
	for _, c := range opts.GroupBy {
		p.l.group = append(p.l.group, p.source(c))
	}
	if len(opts.Aggregates) == 0 {
		p.fault("no aggregates")
	}
	for _, a := range opts.Aggregates {
		p.aggregate(a)
	}
	p.window(opts)
	if err := errors.Join(p.faults...); err != nil {
		return nil, err
	}
	return p.l, nil
}

// planner collects what is wrong.
type planner struct {
	q      *triegs.Query
	l      *layout
	faults []error
}

func (p *planner) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("%w: summary of %s: "+format, append([]any{triegs.ErrValue, p.q.Name()}, args...)...))
}

// source finds a column.
func (p *planner) source(column string) source {
	outputs := len(p.l.columns) - p.q.Aggregates()
	switch i := slices.Index(p.l.columns, column); {
	case column == Annotation && p.q.Semiring() == "":
		p.fault("the query has no semiring")
	case column == Annotation:
		return source{fromValue, 0}
	case i < 0:
		p.fault("no column %q", column)
	case i >= outputs:
		return source{fromValue, i - outputs}
	default:
		return source{fromOutput, i}
	}
	return source{}
}

func (p *planner) aggregate(a Aggregate) {
	switch {
	case a.kind == 0:
		p.fault("the zero Aggregate")
		return
	case a.kind == count:
		p.l.told = append(p.l.told, told{kind: count})
		return
	}
	i := slices.IndexFunc(p.l.measured, func(m measure) bool { return m.name == a.column })
	if i < 0 {
		i = len(p.l.measured)
		p.l.measured = append(p.l.measured, measure{name: a.column, of: p.source(a.column)})
	}
	m := &p.l.measured[i]
	m.sums = m.sums || a.kind == sum || a.kind == avg
	m.order = m.order || a.kind == least || a.kind == most
	p.l.told = append(p.l.told, told{a.kind, i})
}

func (p *planner) window(opts Options) {
	switch {
	case opts.Expiry != nil && len(opts.Times) > 0:
		p.fault("Expiry and Times exclude each other")
	case len(opts.Times) == 0 && opts.Range != 0:
		p.fault("a Range without Times")
	case len(opts.Times) > 0 && opts.Range <= 0:
		p.fault("Times with a Range of %s", opts.Range)
	}
	p.l.span = int64(opts.Range)
	for _, c := range opts.Times {
		switch s := p.source(c); {
		case s.from != fromOutput:
			p.fault("time column %q is no output variable", c)
		default:
			p.l.times = append(p.l.times, s.i)
		}
	}
}
