package fuzz

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
)

// winQuery is a query with windows.
type winQuery struct {
	randq.Query
	option bool // the window of the query is given beside its text
}

// text gives the query in the syntax of the product.
func (q *winQuery) text() string {
	if !q.option {
		return q.Text()
	}
	c := q.Query
	c.Window, c.Atoms = oracle.Window{}, slices.Clone(c.Atoms)
	for i := range c.Atoms {
		if c.Atoms[i].Window == q.Window {
			c.Atoms[i].Window = oracle.Window{}
		}
	}
	return c.Text()
}

// options gives the options of the registration.
func (q *winQuery) options() []triegs.QueryOption {
	out := options(&q.Query)
	if q.option {
		out = append(out, triegs.Window(time.Duration(q.Window.Range), time.Duration(q.Window.Slide)))
	}
	return out
}

// windowed tells whether some atom has a window.
func (q *winQuery) windowed() bool {
	return slices.ContainsFunc(q.Atoms, func(a oracle.Atom) bool { return a.Window != oracle.Window{} })
}

// naked is the query with no window at all.
func (q *winQuery) naked() *winQuery {
	n := &winQuery{Query: q.Query}
	n.Window = oracle.Window{}
	n.Atoms = slices.Clone(n.Atoms)
	for i := range n.Atoms {
		n.Atoms[i].Window = oracle.Window{}
	}
	return n
}

// variant is the same query with its atoms in the opposite order.
func (q *winQuery) variant() *winQuery {
	v := *q
	v.Name += "v"
	v.Atoms = slices.Clone(v.Atoms)
	slices.Reverse(v.Atoms)
	return &v
}

// What a step of a case does.
const (
	actAppend     = "append"
	actAdvance    = "advance"
	actRegister   = "register"
	actDrop       = "drop"
	actRetain     = "retain"
	actCheckpoint = "checkpoint"
	actBeside     = "checkpoint-beside"
	actReopen     = "reopen"
	actRestore    = "restore"
	actVerify     = "verify"
)

// winAct is one step of a case.
type winAct struct {
	do      string
	events  []oracle.Event
	at      int64 // logical time, or the watermark
	silent  bool  // event time: no watermark is given
	ignore  bool  // IgnoreMissing
	source  int   // event time: of the events
	again   int   // event time: so many events of the source are sent again before
	wall    int64 // reading of the clock
	untimed bool  // arrival mode: the events have the time of the batch
	query   int
	rel     string
	span    int64
}

// winCase is a list of steps with what stays the same through them.
type winCase struct {
	eventTime bool
	lateness  int64
	policy    triegs.LatePolicy
	sources   int // event time: with a name; one more has none
	declared  bool
	idle      int64 // after so long a source is not waited for, 0 = never
	anchors   int   // so many of the queries are there from the first and stay
	queries   []winQuery
	acts      []winAct
}

// sourceName names the sources of a case.
func (c *winCase) sourceName(i int) string {
	if i == c.sources {
		return ""
	}
	return fmt.Sprintf("s%d", i)
}

// The refusals beside those of the oracle.
var (
	errLate       = errors.New("a late event")
	errNoRelation = errors.New("no such relation")
)

// winModel says what a store holds after the steps of a case.
type winModel struct {
	c       *winCase
	in      winInput
	store   *oracle.Store
	input   oracle.Reorder // event time
	stale   bool           // store is not what input says
	started bool           // now was set
	now     int64
	known   map[string]bool // relations that there are
	on      map[int]bool    // queries that are registered
	spans   map[string]int64
}

func newWinModel(c *winCase) *winModel {
	m := &winModel{
		c: c, in: newWinInput(c), store: new(oracle.Store), now: math.MinInt64,
		known: map[string]bool{}, on: map[int]bool{}, spans: map[string]int64{},
	}
	m.input.Lateness = c.lateness
	return m
}

// apply makes one step. The error says why it is refused.
func (m *winModel) apply(a *winAct) error {
	m.in.wall = a.wall
	switch a.do {
	case actAppend:
		if m.c.eventTime {
			return m.arrive(a)
		}
		return m.append(a)
	case actAdvance:
		m.move(a.at)
	case actRegister, actDrop:
		// What is retained changes with the next epoch only, which for a query
		// that comes is that of its variant.
		m.settle()
		m.on[a.query] = a.do == actRegister
		if a.do == actRegister {
			m.settle()
		}
		for _, atom := range m.c.queries[a.query].Atoms {
			m.known[atom.Relation] = true
		}
	case actRetain:
		if !m.known[a.rel] {
			return errNoRelation
		}
		m.settle()
		m.spans[a.rel] = a.span
		if a.span == 0 {
			delete(m.spans, a.rel)
		}
	case actReopen, actRestore:
		m.in.open()
	}
	return nil
}

// append takes a batch in arrival mode.
func (m *winModel) append(a *winAct) error {
	events, err := m.in.judge(m.timed(a), func(*oracle.Event) int64 { return m.now })
	if err != nil {
		return err
	}
	if _, err := m.store.Apply(events, a.ignore); err != nil {
		return err
	}
	m.in.accept()
	for _, e := range events {
		m.known[e.Relation] = m.known[e.Relation] || !e.Delete
	}
	m.move(a.at)
	return nil
}

// timed gives the events of a batch the time that they have.
func (m *winModel) timed(a *winAct) []oracle.Event {
	if !a.untimed {
		return a.events
	}
	out := slices.Clone(a.events)
	for i := range out {
		out[i].Time = max(m.now, a.at)
	}
	return out
}

// arrive takes a batch in event-time mode.
func (m *winModel) arrive(a *winAct) error {
	events, replay, err := m.in.arrive(a, m.now)
	if err != nil || replay {
		return err
	}
	m.in.accept()
	m.input.Add(events...)
	to := m.now
	if low, any := m.in.lowest(-1); any {
		to = max(to, low)
	}
	m.move(to)
	return nil
}

// move moves logical time, never back.
func (m *winModel) move(t int64) {
	if !m.started || t > m.now {
		m.now, m.started = t, true
	}
	m.settle()
}

// settle brings the state to the logical time. In event-time mode it is made when
// somebody looks at it.
func (m *winModel) settle() {
	if m.c.eventTime {
		m.input.Advance(m.now)
		m.stale = true
		return
	}
	m.store.Retain(m.retention())
	m.store.Advance(m.now)
}

// state is what the store holds.
func (m *winModel) state() *oracle.Store {
	if m.stale {
		m.store, _, _ = m.input.State(m.retention())
		m.stale = false
	}
	return m.store
}

// retention is what the registered queries and the explicit spans keep.
func (m *winModel) retention() map[string]oracle.Retention {
	var queries []*oracle.Query
	for _, i := range slices.Sorted(maps.Keys(m.on)) {
		if m.on[i] {
			queries = append(queries, m.c.queries[i].Oracle())
		}
	}
	return oracle.RetentionOf(queries, m.spans)
}
