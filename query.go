package triegs

import (
	"context"
	"slices"

	"github.com/triegs/triegs/catalog"
	"github.com/triegs/triegs/query/plan"
)

// Query is a registered query. It is a description: what it says stays true of
// the epochs in which the query is registered.
type Query struct{ q *catalog.Query }

// Name is the name under which the query was registered.
func (q *Query) Name() string { return q.q.Name }

// Text is the text as it was given.
func (q *Query) Text() string { return q.q.Text }

// Columns names the columns of an answer: those of the output variables, then
// those of the aggregates.
func (q *Query) Columns() []string { return slices.Clone(columns(q.q.Plan.Query)) }

// Aggregates is the number of aggregates, which are the last columns.
func (q *Query) Aggregates() int { return len(q.q.Plan.Query.Aggregates) }

// Semiring names the semiring whose values annotate the answers. It is empty for
// the natural numbers, for distinct answers, and for a query with aggregates.
func (q *Query) Semiring() string { return q.q.Plan.Query.Semiring }

// Class names the structural class of the query, which decides what it costs.
func (q *Query) Class() string { return q.Explain().Class }

// Epoch is the epoch of the registration, the first that has answers.
func (q *Query) Epoch() Epoch { return Epoch(q.q.Epoch) }

// Distinct reports whether answers have no multiplicity of their own: the
// query is one over the Boolean semiring.
func (q *Query) Distinct() bool { return q.q.Plan.Query.Distinct }

// Query describes a registered query as it is at the epoch of the snapshot: another
// one may have its name by now. Errors: ErrNoSuchQuery and those of a snapshot that
// has ended.
func (s *Snapshot) Query(name string) (*Query, error) {
	if err := s.enter(); err != nil {
		return nil, edge(err)
	}
	defer s.leave()
	q, err := s.schema().Query(name)
	if err != nil {
		return nil, edge(err)
	}
	return &Query{q}, nil
}

// Definition describes the query of the subscription, which stays the same one.
func (s *Subscription) Definition() *Query { return &Query{s.q} }

// Explain tells the class, the join tree, and what the query costs.
func (q *Query) Explain() *Explanation { return q.q.Plan.Explain() }

// Explain explains a query text as it would be evaluated here, or as it is if a
// query is registered with the same text: then with the tuples that each node of its
// tree holds, and what they have cost for each update since the query was registered
// or the store was opened. Relations that have never had a fact are named. Errors:
// those of Explain, ErrClosed and ctx's.
func (db *DB) Explain(ctx context.Context, text string) (*Explanation, error) {
	x, err := Explain(text)
	if err != nil || !x.Evaluable {
		return x, err
	}
	s, err := db.Snapshot()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.enter(); err != nil {
		return nil, edge(err)
	}
	defer s.leave()
	for _, q := range s.schema().Queries() {
		if q.Text == text {
			x = q.Plan.Explain()
			return x, edge(db.engine.Explain(ctx, s.vector, x, q.Plan, q.Name))
		}
	}
	p, err := catalog.Compile(text, catalog.Options{})
	if err != nil {
		return nil, edge(err)
	}
	return x, edge(db.engine.Explain(ctx, s.vector, x, p, ""))
}

// Explanation tells what a query is, how it is maintained and what that costs.
type Explanation = plan.Explanation

// Explain explains a query text of any class without a store. Errors:
// ErrSyntax, ErrArity, ErrUnsupported, each with line:column.
func Explain(text string) (*Explanation, error) {
	q, err := catalog.Parse(text, catalog.Options{})
	if err != nil {
		return nil, edge(err)
	}
	x, err := plan.Explain(q)
	if err != nil {
		return nil, edge(err)
	}
	return x, nil
}
