package fuzz

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// goldenDir holds stores that this version of the format must open for ever. The
// test makes them anew with the flag -rewrite; that is right for a new version
// only, beside the old ones.
var goldenDir = filepath.Join("testdata", "golden", "v1")

// goldenState is what a golden store says of itself.
type goldenState struct {
	Epoch      triegs.Epoch                     `json:"epoch"`
	Checkpoint triegs.Epoch                     `json:"checkpoint"`
	Time       time.Time                        `json:"time"`
	Digest     string                           `json:"digest"`
	Sources    map[string]triegs.SourcePosition `json:"sources"`
	Answers    map[string][]string              `json:"answers"` // by query
	Windows    map[string][]string              `json:"windows"` // by query, of its atoms
	Waiting    int                              `json:"waiting"`
}

func goldenStateOf(t *testing.T, db *triegs.DB) goldenState {
	t.Helper()
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	out := goldenState{
		Epoch: snap.Epoch(), Checkpoint: db.Recovery().Checkpoint, Time: snap.Time(), Digest: fmt.Sprint(digestOf(t, db)),
		Sources: map[string]triegs.SourcePosition{}, Answers: map[string][]string{},
		Windows: map[string][]string{}, Waiting: db.Metrics().Waiting,
	}
	for name := range snap.Offsets() {
		out.Sources[name], _ = db.Source(name)
	}
	for _, q := range db.Queries() {
		answers, err := gather(snap.Answers(q.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for k, n := range answers {
			out.Answers[q.Name()] = append(out.Answers[q.Name()], fmt.Sprintf("%s x%d", k, n))
		}
		slices.Sort(out.Answers[q.Name()])
		for _, alias := range q.Explain().Aliases {
			out.Windows[q.Name()] = append(out.Windows[q.Name()], alias.Window)
		}
	}
	if err := db.Verify(context.Background()); err != nil {
		t.Fatal(err)
	}
	return out
}

// goldenStep is epoch n of the golden stores: terms of every kind, IDs, values,
// copies, retractions, two sources, queries that come and go.
func goldenStep(t *testing.T, db *triegs.DB, n int) {
	t.Helper()
	ctx := context.Background()
	s, i := triegs.String, func(i int) triegs.Term { return triegs.Int(int64(i)) }
	fact := func(relation string, terms ...triegs.Term) triegs.Event {
		return triegs.Event{Relation: relation, Tuple: terms, Time: time.Unix(int64(n), 5)}
	}
	withID := func(e triegs.Event, id string) triegs.Event { e.ID = id; return e }
	var err error
	switch n {
	case 1:
		_, err = db.Register(ctx, "two hops", "q(x, y, z) :- knows(x, y), knows(y, z).")
	case 2:
		_, err = db.Register(ctx, "gone", "q(x) :- knows(x, 7).")
	case 3:
		err = db.Drop(ctx, "gone")
	case 4:
		_, err = db.Register(ctx, "in SPARQL", "SELECT ?x ?y WHERE { ?x <http://example.org/p> ?y }", triegs.Set())
	case 5:
		err = db.ResetSource(ctx, "topic", "second incarnation")
	case 6:
		err = db.SkipTo(ctx, "topic", 40)
	default:
		b := triegs.Batch{Time: time.Unix(int64(n), 7), Source: "topic"}
		b.Offset, _ = db.Offset("topic")
		kinds := []triegs.Term{
			s("a text that is longer than fifteen bytes"), s("short"), s(""), triegs.IRI("http://example.org/thing"), i(-5), triegs.Float(2.5),
			triegs.Bool(true), triegs.Time(time.Unix(1, 2)), triegs.Bytes([]byte{0, 1, 255}), triegs.Blank("b0"),
			triegs.LangString("Grüße", "de"), triegs.Typed("x", "http://example.org/type"),
		}
		k := kinds[n%len(kinds)]
		valued := withID(fact("knows", k, i(n%5)), fmt.Sprint("id", n))
		valued.Value = triegs.Float(float64(n))
		b.Events = append(b.Events, valued, fact("knows", i(n%5), k), fact("knows", i(n%5), k),
			fact("http://example.org/p", triegs.IRI(fmt.Sprint("http://example.org/", n%4)), k), fact("wide", k, k, i(n), s("w"), i(0)))
		if n > 12 {
			gone := fact("knows", i((n-3)%5), kinds[(n-3)%len(kinds)])
			gone.Op = triegs.Delete
			b.Events = append(b.Events, gone, triegs.Event{Op: triegs.Delete, ID: fmt.Sprint("id", n-4)})
		}
		other := triegs.Batch{Source: "other", Time: b.Time, Events: []triegs.Event{fact("single", i(n))}}
		other.Offset, _ = db.Offset("other")
		_, err = db.AppendAll(ctx, b, other)
	}
	if err != nil {
		t.Fatalf("step %d: %v", n, err)
	}
}

// goldenTimedStep is epoch n of the golden stores of event time: windows of all
// kinds, a retention, two sources that tell their watermarks or do not, events
// that wait, come late and are refreshed, and time that moves without them.
func goldenTimedStep(t *testing.T, db *triegs.DB, n int) {
	t.Helper()
	ctx := context.Background()
	i := func(i int) triegs.Term { return triegs.Int(int64(i)) }
	at := func(seconds int) time.Time { return time.Unix(int64(5*n+seconds), 9) }
	var err error
	switch n {
	case 1:
		_, err = db.Register(ctx, "slid", "slid(x, y) :- e(x, y).", triegs.Window(30*time.Second, 10*time.Second))
	case 2:
		_, err = db.Register(ctx, "newest", "newest(x) :- f(x) last 5.")
	case 3:
		_, err = db.Register(ctx, "mixed", "mixed(x, y) :- e(x, y)[1m], f(y)[all] window 20s.")
	case 4:
		err = db.Retain(ctx, "e", 2*time.Minute)
	case 12:
		_, err = db.Advance(ctx, at(-8))
	case 13:
		err = db.Drop(ctx, "newest")
	case 14:
		_, err = db.Register(ctx, "counted", "SELECT ?x WHERE { ?x :e ?y } WINDOW [LAST 7]")
	default:
		told := triegs.Batch{Source: "told", Watermark: at(-10)}
		told.Offset, _ = db.Offset("told")
		told.Events = []triegs.Event{
			{Relation: "e", Tuple: []triegs.Term{i(n), i(n % 4)}, Time: at(0), ID: fmt.Sprint("id", n%3), Value: triegs.Float(0.5)},
			{Relation: "e", Tuple: []triegs.Term{i(n % 4), i(n)}, Time: at(-7)},
			{Relation: "e", Tuple: []triegs.Term{i(n % 4), i(n % 2)}, Time: at(-18)}, // late, within the lateness
			{Op: triegs.Delete, Relation: "e", Tuple: []triegs.Term{i(n % 4), i(n % 2)}, Time: at(-12)},
			{Relation: "e", Tuple: []triegs.Term{i(n), i(n % 4)}, Time: at(2), ID: fmt.Sprint("id", n%3)}, // refreshed
			{Op: triegs.Delete, ID: fmt.Sprint("id", n%3), Time: at(3)},
		}
		plain := triegs.Batch{Source: "plain", Events: []triegs.Event{
			{Relation: "f", Tuple: []triegs.Term{i(n % 4)}, Time: at(-2)},
			{Relation: "f", Tuple: []triegs.Term{triegs.String("a text that is longer than fifteen bytes")}, Time: at(-11)},
		}}
		plain.Offset, _ = db.Offset("plain")
		_, err = db.AppendAll(ctx, told, plain)
	}
	if err != nil {
		t.Fatalf("step %d: %v", n, err)
	}
}

// goldenStore is one shape: to which epoch the store goes, and where it is saved.
type goldenStore struct {
	name     string
	to       int
	timed    bool // by event time
	saves    []int
	cutter   bool // a long ID comes and goes, so that the log is cut
	backup   bool
	checkAt  triegs.Epoch
	segments bool // the log does not begin at entry 1
}

var goldenStores = []goldenStore{
	{name: "log", to: 20},
	{name: "checkpoint", to: 24, saves: []int{18}, checkAt: 18},
	{name: "chain", to: 30, saves: []int{10, 15, 20, 25}, checkAt: 25},
	{name: "cut", to: 30, saves: []int{12, 20, 26}, cutter: true, checkAt: 26, segments: true},
	{name: "backup", to: 22, saves: []int{12, 17}, backup: true, checkAt: 22},
	{name: "times", to: 24, timed: true, saves: []int{11, 16}, checkAt: 16},
}

// options are those with which the store is written.
func (g *goldenStore) options() *triegs.Options {
	o := logOnly()
	o.EventTime = g.timed
	if g.timed {
		o.Lateness = 20 * time.Second
	}
	return o
}

// step is epoch n of the store.
func (g *goldenStore) step(t *testing.T, db *triegs.DB, n int) {
	t.Helper()
	if g.timed {
		goldenTimedStep(t, db, n)
	} else {
		goldenStep(t, db, n)
	}
}

// cutterBytes fills a segment of the log.
const cutterBytes = 4 << 20

// makeGolden makes the golden stores.
func makeGolden(t *testing.T) {
	ctx := context.Background()
	for _, g := range goldenStores {
		dir := filepath.Join(t.TempDir(), g.name)
		db, err := triegs.Open(dir, g.options())
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; int(db.Metrics().Epoch) < g.to; n++ {
			g.step(t, db, n)
			e := int(db.Metrics().Epoch)
			if g.cutter && e == 15 { // in and out, so that no checkpoint has it
				in := triegs.Edge("knows", triegs.Int(1), triegs.Int(2))
				in.ID = strings.Repeat("c", cutterBytes)
				out := triegs.Event{Op: triegs.Delete, ID: in.ID}
				if _, err := db.Append(ctx, triegs.Batch{Time: time.Unix(15, 0), Events: []triegs.Event{in, out}}); err != nil {
					t.Fatal(err)
				}
				e++
			}
			if slices.Contains(g.saves, e) {
				if err := db.Checkpoint(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		from := dir
		if g.backup {
			from += "-backup"
			if err := db.Backup(ctx, from); err != nil {
				t.Fatal(err)
			}
		}
		shut(t, g.name, db)
		to := filepath.Join(goldenDir, g.name)
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(to, "LOCK")) // holds the id of a process
		db, err = triegs.Open(to, &triegs.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(goldenStateOf(t, db), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		shut(t, g.name, db)
		if err := os.WriteFile(to+".json", append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Stores of version 1 open with the state that they had, for reading as they are
// and, as copies, for writing, with all ways to go on.
func TestGoldenStores(t *testing.T) {
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" {
		makeGolden(t)
	}
	quiet(t)
	for _, g := range goldenStores {
		t.Run(g.name, func(t *testing.T) {
			dir := filepath.Join(goldenDir, g.name)
			text, err := os.ReadFile(dir + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var want goldenState
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if want.Checkpoint != g.checkAt || int(want.Epoch) != g.to {
				t.Errorf("%s was made at epoch %d from a checkpoint of %d", g.name, want.Epoch, want.Checkpoint)
			}
			if first := filepath.Base(segments(t, dir)[0]); g.segments && first == fmt.Sprintf("%020d", 1) {
				t.Errorf("the log of %s was not cut: it begins with %s", g.name, first)
			}
			for _, cache := range []int64{0, 1} {
				untouched(t, g.name, dir, func() {
					db, err := triegs.Open(dir, &triegs.Options{ReadOnly: true, DictionaryCacheBytes: cache})
					if err != nil {
						t.Fatal(err)
					}
					sameGolden(t, g.name, want, db)
					shut(t, g.name, db)
				})
			}
			g.goOn(t, dir, want)
		})
	}
}

// goOn opens a copy for writing, saves it, and restores it.
func (g *goldenStore) goOn(t *testing.T, dir string, want goldenState) {
	t.Helper()
	ctx := context.Background()
	root := t.TempDir()
	copied, restored := filepath.Join(root, "copy"), filepath.Join(root, "restored")
	if err := triegs.Restore(ctx, dir, restored); err != nil {
		t.Fatal(err)
	}
	homes := []string{restored}
	if !g.backup {
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		homes = append(homes, copied)
	}
	for _, home := range homes {
		db, err := triegs.Open(home, g.options())
		if err != nil {
			t.Fatal(err)
		}
		was := want
		if home == restored {
			was.Checkpoint = want.Epoch
		}
		sameGolden(t, home, was, db)
		g.step(t, db, int(want.Epoch)+1)
		if err := db.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
		after := goldenStateOf(t, db)
		shut(t, home, db)
		if db, err = triegs.Open(home, g.options()); err != nil {
			t.Fatal(err)
		}
		after.Checkpoint = want.Epoch + 1
		sameGolden(t, home+" saved again", after, db)
		shut(t, home, db)
	}
}

// sameGolden compares a store with the recorded state.
func sameGolden(t *testing.T, what string, want goldenState, db *triegs.DB) {
	t.Helper()
	a, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(goldenStateOf(t, db), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Fatalf("%s: the store says\n%s\nwant\n%s", what, b, a)
	}
}

// The golden stores stay small.
func TestGoldenSize(t *testing.T) {
	var sum int64
	err := filepath.WalkDir(goldenDir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil || sum > 160_000 {
		t.Errorf("%d bytes, %v", sum, err)
	}
}
