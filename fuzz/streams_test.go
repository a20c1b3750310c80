package fuzz

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle/vectors"
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

// recordedStream is a stream with its name for messages.
type recordedStream struct {
	*vectors.Stream
	text string
}

// answers reads the answers of q with their annotations, each by enumeration and
// by looking it up.
func (v *recordedStream) answers(t *testing.T, s *triegs.Snapshot) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	note := func(r *triegs.Row) int64 {
		n, ok := r.Value(0).(int64)
		if !ok || v.Counted && n != r.Multiplicity() {
			t.Fatalf("%s: value %v, multiplicity %d", v.text, r.Value(0), r.Multiplicity())
		}
		return n
	}
	for r, err := range s.Answers("q") {
		if err != nil {
			t.Fatalf("%s: %v", v.text, err)
		}
		if _, twice := out[key(r)]; twice {
			t.Fatalf("%s: answer %q comes twice", v.text, key(r))
		}
		out[key(r)] = note(r)
		tuple := make([]triegs.Term, len(r.Columns()))
		for i := range tuple {
			tuple[i] = r.Term(i)
		}
		found, err := s.Lookup("q", tuple...)
		if err != nil || note(found) != out[key(r)] {
			t.Fatalf("%s: answer %q is %d, found %v, %v", v.text, key(r), out[key(r)], found, err)
		}
	}
	return out
}

// deltaOf gives the net change between two answer sets as the vectors write it.
func deltaOf(before, after map[string]int64) map[string]string {
	out := map[string]string{}
	note := func(of map[string]int64, k string) string {
		if n, ok := of[k]; ok {
			return fmt.Sprint(n)
		}
		return "absent"
	}
	for _, list := range []map[string]int64{before, after} {
		for k := range list {
			if b, a := note(before, k), note(after, k); a != b {
				out[k] = b + " to " + a
			}
		}
	}
	return out
}

// deltaOfEpoch gives the recorded one in that form.
func deltaOfEpoch(e *vectors.Epoch) map[string]string {
	out := map[string]string{}
	note := func(n *int64) string {
		if n == nil {
			return "absent"
		}
		return fmt.Sprint(*n)
	}
	for k, d := range e.Deltas {
		out[k] = note(d.Old) + " to " + note(d.New)
	}
	return out
}

// Every recorded stream, of four payloads and of queries of every acyclic class,
// gives the recorded answers and changes after each epoch.
func TestRecordedStreams(t *testing.T) {
	streams, err := vectors.Streams("..")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the vectors are not at hand:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	classes, payloads, epochs, tuples := map[string]int{}, map[string]int{}, 0, 0
	for i := range streams {
		v := &recordedStream{&streams[i], streams[i].Text("q")}
		x, err := triegs.Explain(v.text)
		if err != nil {
			t.Fatalf("%s: %v", v.text, err)
		}
		classes[x.Class]++
		payloads[v.Query.Semiring]++
		epochs += len(v.Epochs)
		t.Run(fmt.Sprintf("%03d %s", i, v.Query.Semiring), func(t *testing.T) { tuples += v.play(t, i%8 == 0) })
	}
	t.Logf("%d streams, %d epochs, %d answers compared; payloads %v, classes %v", len(streams), epochs, tuples, payloads, classes)
	if len(payloads) != 4 || len(classes) < 3 {
		t.Errorf("payloads %v, classes %v", payloads, classes)
	}
}

// play runs a stream, with a restart after each epoch if it is durable, and gives
// the number of answers that were compared.
func (v *recordedStream) play(t *testing.T, durable bool) (compared int) {
	dir := ""
	opts := &triegs.Options{Durability: triegs.SyncNone}
	if durable {
		dir = t.TempDir()
	}
	w := newWorld(t, dir, opts)
	w.register("q", v.text)
	before := map[string]int64{}
	var old []*triegs.Snapshot
	for i := range v.Epochs {
		e := &v.Epochs[i]
		b := triegs.Batch{Time: time.Unix(int64(i), 0)}
		for _, o := range e.Events {
			b.Events = append(b.Events, event(o))
		}
		w.append(b)
		s := w.snapshot()
		got := v.answers(t, s)
		if !maps.Equal(got, e.Answers) {
			t.Fatalf("%s, epoch %d: got %v, want %v", v.text, i, got, e.Answers)
		}
		if got, want := deltaOf(before, got), deltaOfEpoch(e); !maps.Equal(got, want) {
			t.Fatalf("%s, epoch %d: changes %v, want %v", v.text, i, got, want)
		}
		w.wantCount(s, "q", int64(len(got)), v.total(got))
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
		if got, want := v.answers(t, s), v.Epochs[i].Answers; !maps.Equal(got, want) {
			t.Fatalf("%s: epoch %d read at the end: got %v, want %v", v.text, i, got, want)
		}
		s.Close()
	}
	return compared
}

// total is what Count adds up.
func (v *recordedStream) total(answers map[string]int64) int64 {
	if !v.Counted {
		return int64(len(answers))
	}
	sum := int64(0)
	for _, n := range answers {
		sum += n
	}
	return sum
}
