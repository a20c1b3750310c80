package vectors

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"testing"

	"github.com/triegs/triegs/internal/oracle"
)

// root is the folder of the repository.
var root = filepath.Join("..", "..", "..")

// streams reads all streams, or skips the test.
func streams(t *testing.T) []Stream {
	t.Helper()
	s, err := Streams(root)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the vectors are not at hand:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOracle checks package oracle against all streams: the answers after every
// epoch and, from two results, the deltas.
func TestOracle(t *testing.T) {
	epochs := map[string]int{}
	for _, s := range streams(t) {
		var state oracle.Store
		was := new(oracle.Result)
		for i, e := range s.Epochs {
			if _, err := state.Apply(e.Events, false); err != nil {
				t.Fatalf("stream %d, epoch %d: %v", s.Number, i, err)
			}
			now, err := s.Query.Rows(&state)
			if err != nil {
				t.Fatalf("stream %d, epoch %d: %v", s.Number, i, err)
			}
			if !now.Safe {
				t.Errorf("stream %d, epoch %d: not safe", s.Number, i)
			}
			if got := values(&s, now.Rows); !maps.Equal(got, e.Answers) {
				t.Errorf("stream %d, %s, epoch %d: got %v, want %v", s.Number, s.Text("q"), i, got, e.Answers)
			}
			checkDeltas(t, &s, i, oracle.Changes(was, now))
			was = now
			epochs[s.Query.Semiring]++
		}
	}
	for _, k := range semirings {
		if epochs[k] != 40*12 {
			t.Errorf("%d epochs in semiring %q, want 40 streams of 12", epochs[k], k)
		}
	}
}

// value is the annotation of a row.
func value(s *Stream, r *oracle.Row) *int64 {
	if r == nil {
		return nil
	}
	var v int64
	if s.Counted {
		v = r.Multiplicity.Int64()
	} else {
		v = r.Values[0].(int64)
	}
	return &v
}

// values are the annotations of all rows.
func values(s *Stream, rows []oracle.Row) map[string]int64 {
	out := map[string]int64{}
	for i := range rows {
		out[oracle.Key(rows[i].Tuple)] = *value(s, &rows[i])
	}
	return out
}

// checkDeltas compares changes with those of the file. A row whose multiplicity
// alone has changed is no delta in a semiring of values.
func checkDeltas(t *testing.T, s *Stream, epoch int, changes []oracle.Change) {
	t.Helper()
	same := func(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	left := maps.Clone(s.Epochs[epoch].Deltas)
	for _, c := range changes {
		old, now := value(s, c.Old), value(s, c.New)
		if same(old, now) {
			continue
		}
		want, ok := left[oracle.Key(c.Tuple)]
		if !ok || !same(want.Old, old) || !same(want.New, now) {
			t.Errorf("stream %d, epoch %d: change %+v is not in the file", s.Number, epoch, c)
		}
		delete(left, oracle.Key(c.Tuple))
	}
	if len(left) > 0 {
		t.Errorf("stream %d, epoch %d: no change of %v", s.Number, epoch, left)
	}
}

// TestText checks the rule text of a stream.
func TestText(t *testing.T) {
	v := func(name string) oracle.Arg { return oracle.Arg{Var: name} }
	for _, tc := range []struct {
		s    Stream
		want string
	}{
		{Stream{Counted: true, Query: oracle.Query{Atoms: []oracle.Atom{{Relation: "R", Args: []oracle.Arg{v("a"), {Const: integer(2)}}}}}}, "q() :- R(a, 2)."},
		{Stream{Query: oracle.Query{Head: []string{"a"}, Semiring: "int", Atoms: []oracle.Atom{
			{Relation: "R", Args: []oracle.Arg{v("a")}, Annotated: true}, {Relation: "S", Args: []oracle.Arg{v("a"), v("b")}, Annotated: true},
		}}}, "q(a) :- R(a)@, S(a, b)@ semiring int."},
	} {
		if got := tc.s.Text("q"); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}

// TestClasses checks that the classes contain each other as they must, and that a
// core is what keeps an acyclic query from being strong-connex.
func TestClasses(t *testing.T) {
	classes, err := Classes(root)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the vectors are not at hand:", err)
	}
	if err != nil || len(classes) != 1000 {
		t.Fatalf("%d classes, error %v; want 1000", len(classes), err)
	}
	for i, c := range classes {
		inside := []bool{c.QHierarchical, c.StrongConnex, c.FreeConnex, c.Acyclic}
		for j := range inside[1:] {
			if inside[j] && !inside[j+1] {
				t.Errorf("class %d: %+v", i, c)
			}
		}
		if c.Acyclic && c.StrongConnex == (c.ExistsHierarchyCore || c.QCore) {
			t.Errorf("class %d: a core in %+v", i, c)
		}
	}
}
