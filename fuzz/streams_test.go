package fuzz

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// shared is the folder of data and vectors beside the repository.
const shared = "../../shared"

// sharedFile opens a file of it, or skips the test where it is absent.
func sharedFile(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(shared, filepath.FromSlash(name)))
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("the shared file %s is not there", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // it was only read
	return f
}

// vector is one case of the recorded streams: a query, and epochs with the
// answers and the change of answers that follow.
type vector struct {
	Semiring string       `json:"semiring"`
	Atoms    []vectorAtom `json:"atoms"`
	Out      []string     `json:"out"`
	Epochs   []struct {
		Updates []vectorUpdate `json:"updates"`
		Answers []vectorAnswer `json:"answers"`
		Delta   []vectorAnswer `json:"delta"`
	} `json:"epochs"`
}

type vectorAtom struct {
	relation string
	args     []vectorArg
}

// vectorArg is a variable, or a constant if the name is empty.
type vectorArg struct {
	name  string
	value int64
}

type vectorUpdate struct {
	op, relation string
	tuple        []int64
	annotation   int64
}

// vectorAnswer is a tuple with its annotations: one of an answer, the old and
// the new one of a change, nil where the tuple was or is absent.
type vectorAnswer struct {
	tuple []int64
	notes []*int64
}

// list reads a JSON array into the given places, one for each part.
func list(b []byte, into ...any) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != len(into) {
		return fmt.Errorf("%d parts in %s, want %d", len(parts), b, len(into))
	}
	for i, p := range parts {
		if err := json.Unmarshal(p, into[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *vectorAtom) UnmarshalJSON(b []byte) error { return list(b, &a.relation, &a.args) }

func (a *vectorArg) UnmarshalJSON(b []byte) error {
	var kind string
	var rest json.RawMessage
	if err := list(b, &kind, &rest); err != nil {
		return err
	}
	if kind == "v" {
		return json.Unmarshal(rest, &a.name)
	}
	return json.Unmarshal(rest, &a.value)
}

func (u *vectorUpdate) UnmarshalJSON(b []byte) error {
	return list(b, &u.op, &u.relation, &u.tuple, &u.annotation)
}

func (a *vectorAnswer) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	a.notes = make([]*int64, len(parts)-1)
	into := []any{&a.tuple}
	for i := range a.notes {
		into = append(into, &a.notes[i])
	}
	return list(b, into...)
}

// rule is the query as rule text.
func (v *vector) rule() string {
	var atoms []string
	for _, a := range v.Atoms {
		var args []string
		for _, x := range a.args {
			if x.name == "" {
				args = append(args, fmt.Sprint(x.value))
			} else {
				args = append(args, x.name)
			}
		}
		atoms = append(atoms, a.relation+"("+strings.Join(args, ", ")+")")
	}
	return "q(" + strings.Join(v.Out, ", ") + ") :- " + strings.Join(atoms, ", ") + "."
}

// full tells, from the definitions, whether the query is full once variables of
// a single atom that are not put out are folded away, and acyclic.
func (v *vector) full() bool {
	uses := map[string]int{}
	var edges []map[string]bool
	for _, a := range v.Atoms {
		edge := map[string]bool{}
		for _, x := range a.args {
			if x.name != "" {
				edge[x.name] = true
			}
		}
		for name := range edge {
			uses[name]++
		}
		edges = append(edges, edge)
	}
	for name, n := range uses {
		if n > 1 && !slices.Contains(v.Out, name) {
			return false
		}
	}
	return acyclic(edges)
}

// acyclic is the reduction of Graham, Yu and Ozsoyoglu: take away vertices of
// one edge and edges inside of another; nothing is left iff it is acyclic.
func acyclic(edges []map[string]bool) bool {
	for changed := true; changed; {
		changed = false
		uses := map[string]int{}
		for _, e := range edges {
			for v := range e {
				uses[v]++
			}
		}
		for _, e := range edges {
			for v := range e {
				if uses[v] == 1 {
					delete(e, v)
					changed = true
				}
			}
		}
		for i, e := range edges {
			inside := func(f map[string]bool) bool {
				for v := range e {
					if !f[v] {
						return false
					}
				}
				return true
			}
			rest := slices.Delete(slices.Clone(edges), i, i+1)
			if slices.ContainsFunc(rest, inside) {
				edges, changed = rest, true
				break
			}
		}
	}
	return len(edges) == 0 || len(edges) == 1 && len(edges[0]) == 0
}

// events gives the updates of an epoch. A natural number n is n contributions;
// any other annotation is the value of one.
func (v *vector) events(updates []vectorUpdate) (out []triegs.Event) {
	for _, u := range updates {
		e := triegs.Event{Relation: u.relation}
		if u.op == "-" {
			e.Op = triegs.Delete
		}
		for _, x := range u.tuple {
			e.Tuple = append(e.Tuple, triegs.Int(x))
		}
		n := int64(1)
		if v.Semiring == "nat" {
			n = u.annotation
		} else {
			e.Value = triegs.Int(u.annotation)
		}
		for range n {
			out = append(out, e)
		}
	}
	return out
}

func tupleKey(tuple []int64) string { return fmt.Sprint(tuple) }

// vectorAnswers reads the answers of q as multiplicities by tuple.
func vectorAnswers(t *testing.T, s *triegs.Snapshot) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for r, err := range s.Answers("q") {
		if err != nil {
			t.Fatal(err)
		}
		tuple := make([]int64, len(r.Columns()))
		for i := range tuple {
			tuple[i], _ = r.Term(i).AsInt()
		}
		if _, twice := out[tupleKey(tuple)]; twice {
			t.Fatalf("answer %v comes twice", tuple)
		}
		out[tupleKey(tuple)] = r.Multiplicity()
	}
	return out
}

// wanted gives the recorded answers; only presence counts for annotations that
// are not natural numbers.
func (v *vector) wanted(list []vectorAnswer) map[string]int64 {
	out := map[string]int64{}
	for _, a := range list {
		n := int64(1)
		if v.Semiring == "nat" {
			n = *a.notes[0]
		}
		out[tupleKey(a.tuple)] = n
	}
	return out
}

// change is what a recorded or an observed delta says of a tuple.
type change struct{ old, new int64 }

// changed gives the net change between two answer sets.
func changed(before, after map[string]int64) map[string]change {
	out := map[string]change{}
	for k, n := range before {
		if after[k] != n {
			out[k] = change{n, after[k]}
		}
	}
	for k, n := range after {
		if _, was := before[k]; !was {
			out[k] = change{0, n}
		}
	}
	return out
}

// delta gives the recorded delta; of annotations that are not natural numbers
// only the tuples that came or went.
func (v *vector) delta(list []vectorAnswer) map[string]change {
	note := func(p *int64) int64 {
		switch {
		case p == nil:
			return 0
		case v.Semiring == "nat":
			return *p
		}
		return 1
	}
	out := map[string]change{}
	for _, a := range list {
		c := change{note(a.notes[0]), note(a.notes[1])}
		if c.old != c.new {
			out[tupleKey(a.tuple)] = c
		}
	}
	return out
}

// Every recorded stream over a full acyclic query gives the recorded answers
// and changes after each epoch; every other query is refused as such.
func TestRecordedStreams(t *testing.T) {
	var cases []vector
	if err := json.NewDecoder(sharedFile(t, "vectors/streams.json")).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	ran, refused, epochs, tuples := map[string]int{}, 0, 0, 0
	for i := range cases {
		v := &cases[i]
		t.Run(fmt.Sprintf("%03d %s", i, v.Semiring), func(t *testing.T) {
			if !v.full() {
				w := newWorld(t, "", nil)
				if _, err := w.db.Register(w.ctx, "q", v.rule()); !errors.Is(err, triegs.ErrUnsupported) {
					t.Fatalf("%s: got %v, want ErrUnsupported", v.rule(), err)
				}
				refused++
				return
			}
			tuples += v.play(t, i%8 == 0)
			ran[v.Semiring]++
			epochs += len(v.Epochs)
		})
	}
	t.Logf("%d cases: %d run (%v; other than nat for presence), %d refused as not full and acyclic; %d epochs, %d answers compared",
		len(cases), ran["nat"]+ran["tropical"]+ran["fuzzy"]+ran["Z"], ran, refused, epochs, tuples)
	if len(cases) > 0 && len(ran) != 4 {
		t.Errorf("no case was run of some semiring: %v", ran)
	}
}

// play runs a case, with a restart after each epoch if it is durable, and gives
// the number of answers that were compared.
func (v *vector) play(t *testing.T, durable bool) (compared int) {
	dir := ""
	opts := &triegs.Options{Durability: triegs.SyncNone}
	if durable {
		dir = t.TempDir()
	}
	w := newWorld(t, dir, opts)
	var how []triegs.QueryOption
	if v.Semiring != "nat" {
		how = append(how, triegs.Distinct())
	}
	w.register("q", v.rule(), how...)
	before := map[string]int64{}
	var old []*triegs.Snapshot
	for i, e := range v.Epochs {
		w.append(triegs.Batch{Events: v.events(e.Updates), Time: time.Unix(int64(i), 0)})
		s := w.snapshot()
		got := vectorAnswers(t, s)
		if want := v.wanted(e.Answers); !maps.Equal(got, want) {
			t.Fatalf("%s, epoch %d: got %v, want %v", v.rule(), i, got, want)
		}
		if got, want := changed(before, got), v.delta(e.Delta); !maps.Equal(got, want) {
			t.Fatalf("%s, epoch %d: changes %v, want %v", v.rule(), i, got, want)
		}
		before = got
		compared += len(got)
		if durable {
			s.Close()
			w.reopen(dir, opts)
		} else {
			old = append(old, s)
		}
	}
	for i, s := range old {
		if got, want := vectorAnswers(t, s), v.wanted(v.Epochs[i].Answers); !maps.Equal(got, want) {
			t.Fatalf("%s: epoch %d read at the end: got %v, want %v", v.rule(), i, got, want)
		}
		s.Close()
	}
	return compared
}
