package randq

import (
	"slices"

	"github.com/triegs/triegs/internal/oracle"
)

// Shrink drops queries, epochs, events, atoms, filters, aggregates, annotations and
// windows as long as the case still fails, and gives a case from which nothing single can be dropped. Its
// cost is about the square of the parts times that of fails.
func Shrink(c Case, fails func(Case) bool) Case {
	for {
		before := c.parts()
		c.Queries = drop(c.Queries, func(qs []Query) bool { return len(qs) > 0 && fails(Case{qs, c.Epochs}) })
		c.Epochs = drop(c.Epochs, func(es []Batch) bool { return fails(Case{c.Queries, es}) })
		for i := range c.Epochs {
			with := func(events []oracle.Event) Case {
				es := slices.Clone(c.Epochs)
				es[i].Events = events
				return Case{c.Queries, es}
			}
			c.Epochs[i].Events = drop(c.Epochs[i].Events, func(evs []oracle.Event) bool { return fails(with(evs)) })
		}
		for i := range c.Queries {
			c.shrinkQuery(i, fails)
		}
		if c.parts() == before {
			return c
		}
	}
}

// shrinkQuery drops parts of one query. With an atom go the variables that
// occur nowhere else, out of the head too. Without an atom a query may not be
// acyclic any more, and then it is for fails to say no.
func (c *Case) shrinkQuery(i int, fails func(Case) bool) {
	try := func(change func(*Query)) bool {
		qs := slices.Clone(c.Queries)
		change(&qs[i])
		return fails(Case{qs, c.Epochs})
	}
	q := &c.Queries[i]
	whole := *q
	q.Atoms = drop(q.Atoms, func(as []oracle.Atom) bool {
		return len(as) > 0 && try(func(q *Query) { *q = whole.onto(as) })
	})
	*q = whole.onto(q.Atoms)
	q.Filters = drop(q.Filters, func(fs []Compare) bool { return try(func(q *Query) { q.Filters = fs }) })
	q.Values = drop(q.Values, func(vs []oracle.Values) bool { return try(func(q *Query) { q.Values = vs }) })
	c.shrinkAnnotations(i, fails)
	for _, flag := range []func(*Query) *bool{
		func(q *Query) *bool { return &q.Distinct },
		func(q *Query) *bool { return &q.Set },
		func(q *Query) *bool { return &q.SPARQL },
	} {
		if *flag(q) && (flag(q) != &q.SPARQL || len(q.Values) == 0) && try(func(q *Query) { *flag(q) = false }) {
			*flag(q) = false
		}
	}
	c.shrinkWindows(i, fails)
}

// shrinkAnnotations takes away aggregates, the semiring with its annotations, those
// of single atoms, and of a query that is not full variables of the head.
func (c *Case) shrinkAnnotations(i int, fails func(Case) bool) {
	q := &c.Queries[i]
	fit := func(change func(*Query)) bool {
		qs := slices.Clone(c.Queries)
		change(&qs[i])
		return (!qs[i].SPARQL || len(qs[i].Head)+len(qs[i].Aggregates) > 0) && fails(Case{qs, c.Epochs})
	}
	q.Aggregates = drop(q.Aggregates, func(as []oracle.Aggregate) bool { return fit(func(q *Query) { q.Aggregates = as }) })
	plain := func(q *Query) {
		q.Semiring, q.Atoms = "", slices.Clone(q.Atoms)
		for j := range q.Atoms {
			q.Atoms[j].Annotated = false
		}
	}
	if q.Semiring != "" && fit(plain) {
		plain(q)
	}
	for j := range q.Atoms {
		bare := func(q *Query) {
			q.Atoms = slices.Clone(q.Atoms)
			q.Atoms[j].Annotated = false
		}
		if q.Atoms[j].Annotated && fit(bare) {
			bare(q)
		}
	}
	if q.projected() {
		q.Head = drop(q.Head, func(vs []string) bool { return fit(func(q *Query) { q.Head = vs }) })
	}
}

// projected reports whether a variable of two atoms is not in the head.
func (q *Query) projected() bool {
	occurs := map[string]int{}
	for _, a := range q.Atoms {
		for _, v := range named(a) {
			if occurs[v]++; occurs[v] > 1 && !slices.Contains(q.Head, v) {
				return true
			}
		}
	}
	return false
}

// shrinkWindows takes away the query's window, then those of single atoms.
func (c *Case) shrinkWindows(i int, fails func(Case) bool) {
	plain := func(change func(*Query)) {
		qs := slices.Clone(c.Queries)
		change(&qs[i])
		if fails(Case{qs, c.Epochs}) {
			c.Queries = qs
		}
	}
	if c.Queries[i].Window != (oracle.Window{}) {
		plain(func(q *Query) { q.setWindow(oracle.Window{}) })
	}
	for j, a := range c.Queries[i].Atoms {
		if a.Window != c.Queries[i].Window {
			plain(func(q *Query) {
				q.Atoms = slices.Clone(q.Atoms)
				q.Atoms[j].Window = q.Window
			})
		}
	}
}

// onto is the query with other atoms, without what mentions a variable that
// none of them has.
func (q *Query) onto(atoms []oracle.Atom) Query {
	out := func(v string) bool {
		return v != "" && !slices.ContainsFunc(atoms, func(a oracle.Atom) bool { return slices.Contains(named(a), v) })
	}
	w := *q
	w.Atoms = atoms
	w.Head = slices.DeleteFunc(slices.Clone(q.Head), out)
	w.Filters = slices.DeleteFunc(slices.Clone(q.Filters), func(c Compare) bool { return out(c.Left) || out(c.Right.Var) })
	w.Values = slices.DeleteFunc(slices.Clone(q.Values), func(v oracle.Values) bool { return slices.ContainsFunc(v.Vars, out) })
	w.Aggregates = slices.DeleteFunc(slices.Clone(q.Aggregates), func(a oracle.Aggregate) bool { return out(a.Var) })
	w.SPARQL = q.SPARQL && len(w.Head)+len(w.Aggregates) > 0
	return w
}

// drop removes ever smaller runs of elements as long as ok holds for the rest.
func drop[T any](s []T, ok func([]T) bool) []T {
	for n := max(1, len(s)/2); n > 0; n /= 2 {
		for i := 0; i+n <= len(s); {
			if rest := slices.Concat(s[:i], s[i+n:]); ok(rest) {
				s = rest
				continue
			}
			i += n
		}
	}
	return s
}

// parts counts what can be dropped.
func (c *Case) parts() int {
	n := len(c.Queries) + len(c.Epochs)
	for _, q := range c.Queries {
		n += len(q.Atoms) + len(q.Filters) + len(q.Values) + len(q.Aggregates)
		if q.Semiring != "" {
			n++
		}
		if q.projected() {
			n += len(q.Head)
		}
		for _, flag := range []bool{q.Distinct, q.Set, q.SPARQL} {
			if flag {
				n++
			}
		}
		if q.Window != (oracle.Window{}) {
			n++
		}
		for _, a := range q.Atoms {
			if a.Window != q.Window {
				n++
			}
			if a.Annotated {
				n++
			}
		}
	}
	for _, b := range c.Epochs {
		n += len(b.Events)
	}
	return n
}
