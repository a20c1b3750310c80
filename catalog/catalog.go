// Package catalog holds what a store knows by name: its relations with their
// arities, and its registered queries with their texts and plans.
//
// A Catalog is immutable once it is published. A change begins with a copy, so
// every root vector keeps the catalog of its epoch.
package catalog

import (
	"fmt"
	"maps"
	"slices"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/plan"
	"github.com/triegs/triegs/query/text"
)

// Relation is a base relation. Its number is its place in the list.
type Relation struct {
	Name  string
	Arity int
	// Keep is for how long it keeps contributions that no query needs, in
	// nanoseconds of logical time, if that was said; 0 if not.
	Keep int64
}

// Query is a registered query.
type Query struct {
	Name string
	Text string
	Set  bool // set mode asked for by a query option
	Dist bool // distinct answers asked for by a query option
	// Window is that of the query option; the plan has what the text says too.
	Window query.Window
	Epoch  uint64
	Plan   *plan.Plan
}

// Catalog lists relations and queries.
type Catalog struct {
	relations []Relation
	number    map[string]int
	queries   map[string]*Query
}

// Empty has nothing in it.
var Empty = &Catalog{}

// Relations lists the relations by number. The list must not be changed.
func (c *Catalog) Relations() []Relation { return c.relations }

// Relation finds a relation by name.
func (c *Catalog) Relation(name string) (number int, r Relation, ok bool) {
	i, ok := c.number[name]
	if !ok {
		return 0, Relation{}, false
	}
	return i, c.relations[i], true
}

// MaxArity is the largest number of columns of a relation.
const MaxArity = 255

// Check reports an arity that no relation can have, as ErrArity.
func (r Relation) Check() error {
	if r.Arity < 1 || r.Arity > MaxArity {
		return fmt.Errorf("%w: relation %s would have %d columns; there are 1 to %d", errs.ErrArity, r.Name, r.Arity, MaxArity)
	}
	return nil
}

// Clone is a catalog of its own with the same content, to which relations may
// be added until it is published. Cost is linear in the number of relations.
func (c *Catalog) Clone() *Catalog {
	d := *c
	d.relations = slices.Clone(c.relations)
	d.number = maps.Clone(c.number)
	if d.number == nil {
		d.number = make(map[string]int)
	}
	return &d
}

// AddRelation adds a relation, whose number is the next one, to a catalog that
// nobody else has.
func (c *Catalog) AddRelation(r Relation) {
	c.number[r.Name] = len(c.relations)
	c.relations = append(c.relations, r)
}

// WithKeep is a catalog in which a relation has another retention, 0 for none of
// its own. Cost is linear in the number of relations.
func (c *Catalog) WithKeep(number int, span int64) *Catalog {
	d := c.Clone()
	d.relations[number].Keep = span
	return d
}

// Query finds a registered query, or fails with ErrNoSuchQuery.
func (c *Catalog) Query(name string) (*Query, error) {
	if q, ok := c.queries[name]; ok {
		return q, nil
	}
	return nil, fmt.Errorf("%w: %q", errs.ErrNoSuchQuery, name)
}

// Queries lists the registered queries by name.
func (c *Catalog) Queries() []*Query {
	return slices.SortedFunc(maps.Values(c.queries), func(a, b *Query) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// Same finds a registered query with the text and the options of q, nil if there is
// none. Cost is linear in the number of queries.
func (c *Catalog) Same(q *Query) *Query {
	for _, o := range c.queries {
		if o.Text == q.Text && o.Set == q.Set && o.Dist == q.Dist && o.Window == q.Window {
			return o
		}
	}
	return nil
}

// QueryCount is the number of registered queries.
func (c *Catalog) QueryCount() int { return len(c.queries) }

// WithQuery adds a query. Its name must be free.
func (c *Catalog) WithQuery(q *Query) *Catalog {
	d := *c
	d.queries = maps.Clone(c.queries)
	if d.queries == nil {
		d.queries = make(map[string]*Query)
	}
	d.queries[q.Name] = q
	return &d
}

// WithoutQuery takes a query out.
func (c *Catalog) WithoutQuery(name string) *Catalog {
	d := *c
	d.queries = maps.Clone(c.queries)
	delete(d.queries, name)
	return &d
}

// Options say how to read a query, beyond its text.
type Options struct {
	Set, Distinct bool
	// Window is that of every atom to which the text gives none.
	Window query.Window
}

// Compile reads a query text and plans it. The options are added to what the
// text says. Errors match ErrSyntax, ErrArity, ErrUnsupported or ErrValue (an option
// that contradicts the text); those of the text carry line:column.
func Compile(source string, o Options) (*plan.Plan, error) {
	q, err := Parse(source, o)
	if err != nil {
		return nil, err
	}
	return plan.Compile(q)
}

// Parse reads a query text without planning it.
func Parse(source string, o Options) (*query.Query, error) {
	q, err := text.Parse(source)
	if err != nil {
		return nil, err
	}
	if o == (Options{}) {
		return q, nil
	}
	with := *q
	with.Set = q.Set || o.Set
	if o.Distinct {
		if err := with.SetDistinct(); err != nil {
			return nil, err
		}
	}
	if err := with.SetWindow(o.Window); err != nil {
		return nil, err
	}
	return &with, nil
}

// CheckArities compares the relations that a plan names with those of the
// catalog and returns the ones that are not there yet, each once.
func (c *Catalog) CheckArities(p *plan.Plan) (missing []Relation, err error) {
	for i := range p.Aliases {
		a := &p.Aliases[i]
		_, r, ok := c.Relation(a.Relation)
		want := Relation{Name: a.Relation, Arity: a.Arity}
		pos := p.Query.Atoms[a.Atom].Pos
		switch {
		case !ok:
			if err := want.Check(); err != nil {
				return nil, fmt.Errorf("%d:%d: %w", pos.Line, pos.Col, err)
			}
			if !slices.Contains(missing, want) {
				missing = append(missing, want)
			}
		case r.Arity != a.Arity:
			return nil, fmt.Errorf("%d:%d: %w: relation %s has %d columns, not %d",
				pos.Line, pos.Col, errs.ErrArity, a.Relation, r.Arity, a.Arity)
		}
	}
	return missing, nil
}
