package views

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/oracle/vectors"
	"github.com/triegs/triegs/internal/term"
	"github.com/triegs/triegs/query/plan"
)

// feed applies the events of an epoch, to relations and to those with values
// beside them, as the room above would.
func (l *lab) feed(events []oracle.Event) error {
	undo := l.noteEvents(events)
	if err := l.s.Apply(); err != nil {
		undo()
		l.s.Abort()
		return err
	}
	l.seal()
	return nil
}

// noteEvents notes the events of an epoch for the version under construction.
func (l *lab) noteEvents(events []oracle.Event) (undo func()) {
	type fact struct{ rel, tuple string }
	before, now := map[fact]int64{}, map[fact]int64{}
	words := map[fact][]uint64{}
	note := func(rel string, tuple []uint64, n int64) {
		l.relation(rel, len(tuple))
		k := fact{rel, fmt.Sprint(tuple)}
		if _, seen := before[k]; !seen {
			before[k] = l.facts[rel][k.tuple]
			words[k] = tuple
		}
		l.facts[rel][k.tuple] += n
		now[k] = l.facts[rel][k.tuple]
	}
	for _, e := range events {
		var tuple []uint64
		for _, text := range e.Tuple {
			t, err := term.Parse(text)
			if err != nil {
				l.t.Fatal(err)
			}
			tuple = append(tuple, l.TermID(t))
		}
		n := int64(1)
		if e.Delete {
			n = -1
		}
		note(e.Relation, tuple, n)
		value := uint64(0)
		if e.Value != "" {
			t, err := term.Parse(e.Value)
			if err != nil {
				l.t.Fatal(err)
			}
			value = l.TermID(t)
		}
		note(e.Relation+"@", append(slices.Clone(tuple), value), n)
	}
	for k, tuple := range words {
		if before[k] != now[k] {
			l.s.Change(l.rels[k.rel], tuple, before[k], now[k])
		}
	}
	return func() {
		for k := range words {
			l.facts[k.rel][k.tuple] = before[k]
		}
	}
}

// rows reads all answers with their values, by the key of the tuple.
func (l *lab) rows(q *Query) (map[string][]any, error) {
	b := l.bind(q)
	all := map[string][]any{}
	values, a := b.Values(), b.Answers()
	for a.Next() {
		var tuple []string
		for _, v := range q.Plan.Query.Head {
			tuple = append(tuple, l.terms[a.Value(v)].String())
		}
		key := oracle.Key(tuple)
		n, err := a.Multiplicity()
		if err != nil {
			return nil, err
		}
		row := []any{n}
		for i := range values.Outputs() {
			v, err := values.Read(i, a.Value, n)
			if err != nil {
				return nil, err
			}
			row = append(row, v)
		}
		if _, twice := all[key]; twice {
			return nil, fmt.Errorf("answer %q comes twice", key)
		}
		all[key] = row
		found, err := b.Lookup(a.Value)
		if err != nil || found != n {
			return nil, fmt.Errorf("answer %q: found with %d, %v; enumerated with %d", key, found, err, n)
		}
	}
	return all, nil
}

// TestStreams runs the machine-readable streams: four payloads, projections of
// every acyclic class.
func TestStreams(t *testing.T) {
	streams, err := vectors.Streams("..")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the vectors are not at hand:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ran, kept := 0, 0
	for _, s := range streams {
		l := newLab(t)
		text := s.Text("q")
		p, err := plan.Compile(l.parse(text))
		if errors.Is(err, errs.ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if len(p.Extra) > 0 {
			kept++
		}
		q := l.register(p)
		for i, e := range s.Epochs {
			if err := l.feed(e.Events); err != nil {
				t.Fatalf("%s, epoch %d: %v", text, i, err)
			}
			rows, err := l.rows(q)
			if err != nil {
				t.Fatalf("%s, epoch %d: %v", text, i, err)
			}
			got := map[string]int64{}
			for key, row := range rows {
				got[key] = row[len(row)-1].(int64)
			}
			if !maps.Equal(got, e.Answers) {
				t.Fatalf("%s, epoch %d:\n%v, want\n%v\n%s", text, i, got, e.Answers, p.Explain())
			}
			l.recomputed(q)
		}
		ran++
	}
	t.Log(ran, "of", len(streams), "streams,", kept, "with kept answers")
}
