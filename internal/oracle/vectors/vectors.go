// Package vectors reads the machine-readable test vectors: streams with their
// answers and deltas after every epoch in four semirings, and hypergraphs with
// their classes. They come from an evaluator that is neither the engine nor
// package oracle.
//
// It owns the form of the files; it never evaluates anything.
package vectors

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/term"
)

// Stream is a query with a stream of updates.
type Stream struct {
	Number int          // in the file, from 0
	Query  oracle.Query // all its atoms are annotated, unless it is Counted
	Epochs []Epoch
	// Counted says that the semiring is that of the natural numbers: an annotation
	// of n is n contributions.
	Counted bool
}

// Epoch is a batch of updates and what it leads to. Annotations are integers.
type Epoch struct {
	Events  []oracle.Event
	Answers map[string]int64 // by oracle.Key of the tuple
	Deltas  map[string]Delta
}

// Delta is an answer before and after an epoch; nil is absent.
type Delta struct{ Old, New *int64 }

// Class is a hypergraph with output variables and what is true of it. Variables
// are letters, atoms strings of them.
type Class struct {
	Atoms               []string `json:"atoms"`
	Out                 string   `json:"out"`
	Acyclic             bool     `json:"acyclic"`
	FreeConnex          bool     `json:"free_connex"`
	StrongConnex        bool     `json:"strong_connex"`
	QHierarchical       bool     `json:"q_hierarchical"`
	ExistsHierarchyCore bool     `json:"exists_hierarchy_core"`
	QCore               bool     `json:"q_core"`
	MinHeight           *int     `json:"min_height"` // nil where it was not searched
}

// semirings are the names of the file as query texts have them.
var semirings = map[string]string{"nat": "", "Z": "int", "tropical": "maxplus", "fuzzy": "maxmin"}

// Streams reads all streams; root is the folder of the repository. The error is
// fs.ErrNotExist where the vectors are not at hand.
func Streams(root string) ([]Stream, error) {
	var raw []struct {
		Semiring string           `json:"semiring"`
		Atoms    []pair[[][2]any] `json:"atoms"`
		Out      []string         `json:"out"`
		Epochs   []rawEpoch       `json:"epochs"`
	}
	if err := read(root, "streams.json", &raw); err != nil {
		return nil, err
	}
	var out []Stream
	for i, r := range raw {
		name, ok := semirings[r.Semiring]
		if !ok {
			return nil, fmt.Errorf("stream %d: semiring %q", i, r.Semiring)
		}
		s := Stream{Number: i, Counted: name == "", Query: oracle.Query{Head: r.Out, Semiring: name}}
		for _, a := range r.Atoms {
			atom := oracle.Atom{Relation: a.first, Annotated: !s.Counted}
			for _, t := range a.second {
				if t[0] == "v" {
					atom.Args = append(atom.Args, oracle.Arg{Var: fmt.Sprint(t[1])})
					continue
				}
				atom.Args = append(atom.Args, oracle.Arg{Const: integer(int64(t[1].(float64)))})
			}
			s.Query.Atoms = append(s.Query.Atoms, atom)
		}
		for _, e := range r.Epochs {
			s.Epochs = append(s.Epochs, e.epoch(s.Counted))
		}
		out = append(out, s)
	}
	return out, nil
}

// Classes reads all hypergraphs, as Streams does.
func Classes(root string) (out []Class, err error) {
	err = read(root, "classes.json", &out)
	return out, err
}

// Text is the query as rule text, with a head of that name.
func (s *Stream) Text(name string) string {
	var body []string
	for _, a := range s.Query.Atoms {
		var args []string
		for _, arg := range a.Args {
			t := arg.Var
			if t == "" {
				c, _ := term.Parse(arg.Const)
				t = c.Lexical()
			}
			args = append(args, t)
		}
		text := a.Relation + "(" + strings.Join(args, ", ") + ")"
		if a.Annotated {
			text += "@"
		}
		body = append(body, text)
	}
	text := fmt.Sprintf("%s(%s) :- %s", name, strings.Join(s.Query.Head, ", "), strings.Join(body, ", "))
	if !s.Counted {
		text += " semiring " + s.Query.Semiring
	}
	return text + "."
}

// read decodes a file of the vectors.
func read(root, name string, into any) error {
	b, err := os.ReadFile(filepath.Join(root, "..", "shared", "vectors", name))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// integer is the text of an integer term.
func integer(i int64) string { return term.Int(i).String() }

// key is that of a tuple of integers.
func key(tuple []int64) string {
	terms := make([]string, len(tuple))
	for i, v := range tuple {
		terms[i] = integer(v)
	}
	return oracle.Key(terms)
}

// pair is an array of a string and something else.
type pair[T any] struct {
	first  string
	second T
}

// UnmarshalJSON reads the array.
func (p *pair[T]) UnmarshalJSON(b []byte) error { return array(b, &p.first, &p.second) }

// array reads an array into as many places.
func array(b []byte, into ...any) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != len(into) {
		return fmt.Errorf("%s has not %d parts", b, len(into))
	}
	for i := range parts {
		if err := json.Unmarshal(parts[i], into[i]); err != nil {
			return err
		}
	}
	return nil
}

// rawEpoch is an epoch as the file has it.
type rawEpoch struct {
	Updates []update `json:"updates"`
	Answers []answer `json:"answers"`
	Delta   []change `json:"delta"`
}

// update is [sign, relation, tuple, annotation].
type update struct {
	sign, relation string
	tuple          []int64
	annotation     int64
}

// UnmarshalJSON reads the array.
func (u *update) UnmarshalJSON(b []byte) error {
	return array(b, &u.sign, &u.relation, &u.tuple, &u.annotation)
}

// answer is [tuple, annotation].
type answer struct {
	tuple      []int64
	annotation int64
}

// UnmarshalJSON reads the array.
func (a *answer) UnmarshalJSON(b []byte) error { return array(b, &a.tuple, &a.annotation) }

// change is [tuple, old or null, new or null].
type change struct {
	tuple []int64
	Delta
}

// UnmarshalJSON reads the array.
func (c *change) UnmarshalJSON(b []byte) error { return array(b, &c.tuple, &c.Old, &c.New) }

// epoch translates an epoch. Of a natural number there are that many equal
// contributions.
func (r *rawEpoch) epoch(counted bool) Epoch {
	e := Epoch{Answers: map[string]int64{}, Deltas: map[string]Delta{}}
	for _, u := range r.Updates {
		event := oracle.Event{Delete: u.sign == "-", Relation: u.relation}
		for _, v := range u.tuple {
			event.Tuple = append(event.Tuple, integer(v))
		}
		copies := int(u.annotation)
		if !counted {
			event.Value, copies = integer(u.annotation), 1
		}
		e.Events = append(e.Events, slices.Repeat([]oracle.Event{event}, copies)...)
	}
	for _, a := range r.Answers {
		e.Answers[key(a.tuple)] = a.annotation
	}
	for _, c := range r.Delta {
		e.Deltas[key(c.tuple)] = c.Delta
	}
	return e
}
