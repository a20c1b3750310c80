package views

import "slices"

// Refusal is why a version cannot be built: what a query keeps would not fit.
type Refusal struct {
	// Query is the first registered one that keeps it, nil while it is being filled
	// beside a store.
	Query *Query
	// Relations are those of the query, as its text names them, that the version
	// changes.
	Relations []string
	Err       error
}

// Error is the error itself.
func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap is the error itself.
func (r *Refusal) Unwrap() error { return r.Err }

// refusal is the error that bringing d up to date has met, with what it concerns.
func (s *Store) refusal(d *derived, err error) error {
	if s.beside && s.stopped != nil {
		return err
	}
	r := &Refusal{Err: err}
	i := slices.IndexFunc(s.queries, func(q *Query) bool { return slices.Contains(q.fed, d) })
	if i < 0 {
		return err
	}
	r.Query = s.queries[i]
	for j, base := range r.Query.bases {
		if base.touched {
			r.Relations = append(r.Relations, r.Query.names[j])
		}
	}
	slices.Sort(r.Relations)
	r.Relations = slices.Compact(r.Relations)
	return r
}
