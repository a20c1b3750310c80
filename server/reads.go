package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/output"
)

// position is where in the history of the store an answer is from.
type position struct {
	Epoch   triegs.Epoch      `json:"epoch"`
	Time    *time.Time        `json:"time"`
	Offsets map[string]uint64 `json:"offsets"`
	Token   string            `json:"token"`
}

// positionOf is that of a snapshot.
func positionOf(s *triegs.Snapshot) position {
	return position{s.Epoch(), timeOrNull(s.Time()), s.Offsets(), s.Token().String()}
}

// timeOrNull is nil for the time before the first.
func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// health tells that the store is open.
func (x *exchange) health() error {
	if _, err := x.params(); err != nil {
		return err
	}
	s, err := x.h.db.Snapshot()
	if err != nil {
		return err
	}
	epoch := s.Epoch()
	_ = s.Close() // always nil
	return x.reply(http.StatusOK, struct {
		Status string       `json:"status"`
		Epoch  triegs.Epoch `json:"epoch"`
	}{"ok", epoch})
}

// stats tells the figures of the store and of the handler.
func (x *exchange) stats() error {
	if _, err := x.params(); err != nil {
		return err
	}
	s, err := x.h.db.Snapshot()
	if err != nil {
		return err
	}
	offsets := s.Offsets()
	_ = s.Close() // always nil
	marks := map[string]time.Time{}
	for _, source := range append(slices.Collect(maps.Keys(offsets)), "") {
		if p, ok := x.h.db.Source(source); ok && !p.Watermark.IsZero() {
			marks[source] = p.Watermark
		}
	}
	return x.reply(http.StatusOK, struct {
		Metrics    triegs.Metrics       `json:"metrics"`
		Offsets    map[string]uint64    `json:"offsets"`
		Watermarks map[string]time.Time `json:"watermarks"`
		Server     Usage                `json:"server"`
	}{x.h.db.Metrics(), offsets, marks, x.h.Usage()})
}

// description tells what a query is.
type description struct {
	Name       string       `json:"name"`
	Text       string       `json:"text"`
	Columns    []string     `json:"columns"`
	Aggregates int          `json:"aggregates"`
	Semiring   string       `json:"semiring"`
	Distinct   bool         `json:"distinct"`
	Class      string       `json:"class"`
	Epoch      triegs.Epoch `json:"epoch"`
}

func describe(q *triegs.Query) description {
	return description{q.Name(), q.Text(), append([]string{}, q.Columns()...), q.Aggregates(), q.Semiring(), q.Distinct(), q.Class(), q.Epoch()}
}

// queries lists all queries.
func (x *exchange) queries() error {
	if _, err := x.params(); err != nil {
		return err
	}
	list := []description{}
	for _, q := range x.h.db.Queries() {
		list = append(list, describe(q))
	}
	return x.reply(http.StatusOK, struct {
		Queries []description `json:"queries"`
	}{list})
}

// query tells of one query.
func (x *exchange) query() error {
	if _, err := x.params(); err != nil {
		return err
	}
	q, err := x.h.db.Query(x.name())
	if err != nil {
		return err
	}
	return x.reply(http.StatusOK, describe(q))
}

// count tells how many answers there are.
func (x *exchange) count() error {
	if _, err := x.params(); err != nil {
		return err
	}
	s, err := x.h.db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	distinct, total, err := s.Count(x.ctx, x.name())
	if err != nil {
		return err
	}
	return x.reply(http.StatusOK, struct {
		Query string `json:"query"`
		position
		Distinct int64 `json:"distinct"`
		Total    int64 `json:"total"`
	}{x.name(), positionOf(s), distinct, total})
}

// lookup tells of one answer.
func (x *exchange) lookup() error {
	p, err := x.params(wherePrefix)
	if err != nil {
		return err
	}
	s, err := x.h.db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	q, err := s.Query(x.name())
	if err != nil {
		return err
	}
	shape := output.ShapeOf(q)
	where := p.where()
	tuple := make([]triegs.Term, len(shape.Columns))
	for i, c := range shape.Columns {
		t, ok := where[c]
		if !ok {
			p.complain("parameter %s is missing", wherePrefix+c)
		}
		tuple[i] = t
		delete(where, c)
	}
	for c := range where {
		p.complain("query %s has no column %.60q", x.name(), c)
	}
	if p.bad != nil {
		return p.bad
	}
	row, err := s.Lookup(x.name(), tuple...)
	if err != nil {
		return err
	}
	e := output.NewEncoder(output.JSONL)
	e.Rows(x.name(), shape)
	return x.reply(http.StatusOK, struct {
		Query string `json:"query"`
		position
		Answer json.RawMessage `json:"answer"`
	}{x.name(), positionOf(s), e.AppendRow(nil, row, false)})
}

// oneRow encodes what an enumeration has given. The error is that which ends it.
func oneRow(e *output.Encoder, dst []byte, row *triegs.Row, err error) ([]byte, error) {
	switch {
	case err == nil:
		return e.AppendRow(dst, row, false), nil
	case row != nil && errors.Is(err, triegs.ErrOverflow):
		return e.AppendRow(dst, row, true), nil
	}
	return dst, fmt.Errorf("query: %w", err)
}
