package positions

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/triegs/triegs/internal/errs"
)

func place(n uint64) Place {
	return Place{
		Query: fmt.Sprintf("query %d", n%3), Registered: n, Epoch: n * n, Acked: int64(n) - 3,
		Store: [16]byte{1, byte(n)}, Timeline: [16]byte{2, byte(n)},
		Each: n%2 == 0, Whole: n%3 == 0, Lost: n%5 == 0,
	}
}

// history is what a file has been after each change.
func history() (changes []change, states []map[string]Place) {
	now := map[string]Place{}
	states = append(states, maps.Clone(now))
	for n := range uint64(9) {
		c := change{name: fmt.Sprintf("name %d", n%4), place: place(n), forget: n == 5}
		if c.forget {
			c.place = Place{}
			delete(now, c.name)
		} else {
			now[c.name] = c.place
		}
		changes = append(changes, c)
		states = append(states, maps.Clone(now))
	}
	return changes, states
}

func (c *change) to(f *File) error {
	if c.forget {
		return f.Forget(c.name)
	}
	return f.Put(c.name, c.place)
}

func mustOpen(t *testing.T, dir string, o Options) *File {
	t.Helper()
	f, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// written gives the file that all changes of history lead to, and where each
// record ends.
func written(t *testing.T) (b []byte, ends []int) {
	t.Helper()
	dir := t.TempDir()
	f := mustOpen(t, dir, Options{})
	changes, _ := history()
	for i := range changes {
		if err := changes[i].to(f); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, Name))
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, len(b))
	}
	b, err := os.ReadFile(filepath.Join(dir, Name))
	if err != nil {
		t.Fatal(err)
	}
	return b, ends
}

// A file that a crash has cut anywhere is what it was before the record there. No crash
// cuts what it was written with.
func TestCut(t *testing.T) {
	b, ends := written(t)
	_, states := history()
	for cut := headerSize; cut <= len(b); cut++ {
		n := 0
		for n < len(ends) && ends[n] <= cut {
			n++
		}
		for _, tail := range []string{"", "\x00\x00\x00\x00\x00\x00\x00\x00", "rubbish"} {
			got, torn, err := decode(append(b[:cut:cut], tail...))
			if n == 0 { // it was written with the first
				if !errors.Is(err, errs.ErrCorrupt) {
					t.Fatalf("cut at %d: %v, %v, want ErrCorrupt", cut, got, err)
				}
				continue
			}
			if err != nil || !maps.Equal(got, states[n]) {
				t.Fatalf("cut at %d: %v, %v, want %v", cut, got, err, states[n])
			}
			if torn == (ends[n-1] == cut && tail == "") {
				t.Fatalf("cut at %d with %q: torn is %v", cut, tail, torn)
			}
		}
	}
	for cut := range headerSize {
		if _, _, err := decode(b[:cut]); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("cut at %d: %v, want ErrCorrupt", cut, err)
		}
	}
}

// A changed byte in front of the last record is found.
func TestDamage(t *testing.T) {
	b, ends := written(t)
	_, states := history()
	last := ends[len(ends)-2]
	for at := range b {
		spoiled := []byte(string(b))
		spoiled[at] ^= 0x41
		got, _, err := decode(spoiled)
		switch {
		case at >= last:
			if err != nil || !maps.Equal(got, states[len(states)-2]) {
				t.Fatalf("byte %d: %v, %v", at, got, err)
			}
		case !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrFormat):
			t.Fatalf("byte %d: %v, want ErrCorrupt", at, err)
		}
	}
}

// Each step may fail: what is told stays, what is on the disk is one of the two
// states, and the next change works.
func TestFailingSteps(t *testing.T) {
	changes, states := history()
	boom := errors.New("disk")
	for fail := 1; ; fail++ {
		dir := t.TempDir()
		steps, failed := 0, ""
		f := mustOpen(t, dir, Options{Step: func(what string) error {
			if steps++; steps == fail {
				failed = what
				return boom
			}
			return nil
		}})
		for i := range changes {
			err := changes[i].to(f)
			if err == nil {
				if !maps.Equal(f.All(), states[i+1]) {
					t.Fatalf("step %d: %v, want %v", fail, f.All(), states[i+1])
				}
				continue
			}
			if !errors.Is(err, boom) || !maps.Equal(f.All(), states[i]) {
				t.Fatalf("step %d (%s): %v leaves %v, want %v", fail, failed, err, f.All(), states[i])
			}
			if on := mustOpen(t, dir, Options{ReadOnly: true}).All(); !maps.Equal(on, states[i]) && !maps.Equal(on, states[i+1]) {
				t.Fatalf("step %d (%s): on the disk are %v", fail, failed, on)
			}
			if err := changes[i].to(f); err != nil {
				t.Fatalf("step %d (%s), again: %v", fail, failed, err)
			}
		}
		if on := mustOpen(t, dir, Options{ReadOnly: true}).All(); !maps.Equal(on, states[len(states)-1]) {
			t.Fatalf("step %d (%s): in the end %v", fail, failed, on)
		}
		if failed == "" {
			if fail < 10 {
				t.Fatalf("only %d steps", fail-1)
			}
			return
		}
	}
}

// Concurrent changes are all there, with fewer syncs than changes, and a file that
// has grown is written anew.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	counts := map[string]int{}
	f := mustOpen(t, dir, Options{Step: func(what string) error {
		mu.Lock()
		defer mu.Unlock()
		counts[what]++
		return nil
	}})
	const names, each = 8, 120
	var all sync.WaitGroup
	for i := range names {
		all.Go(func() {
			name := fmt.Sprintf("name %d %s", i, strings.Repeat("x", 200))
			for n := range uint64(each) {
				p := place(n)
				if err := f.Put(name, p); err != nil {
					t.Error(err)
				}
				if got, ok := f.Get(name); !ok || got != p {
					t.Errorf("%v is there after %v was put", got, p)
				}
			}
		})
	}
	all.Wait()
	if counts["sync the subscribers"] >= names*each {
		t.Errorf("%d syncs of %d changes", counts["sync the subscribers"], names*each)
	}
	if counts["rename the subscribers"] < 2 {
		t.Errorf("written anew %d times", counts["rename the subscribers"])
	}
	if on := mustOpen(t, dir, Options{}).All(); len(on) != names || !maps.Equal(on, f.All()) {
		t.Errorf("on the disk are %v", on)
	}
	st, err := os.Stat(filepath.Join(dir, Name))
	if err != nil || st.Size() > rewriteMin {
		t.Errorf("%v, %v", st.Size(), err)
	}
}

func TestReadOnlyAndMemory(t *testing.T) {
	dir := t.TempDir()
	f := mustOpen(t, dir, Options{ReadOnly: true})
	if err := f.Put("a", place(1)); !errors.Is(err, errs.ErrReadOnly) {
		t.Errorf("%v, want ErrReadOnly", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
	m := mustOpen(t, "", Options{})
	if err := m.Put("a", place(1)); err != nil {
		t.Error(err)
	}
	if p, ok := m.Get("a"); !ok || p != place(1) {
		t.Errorf("%v, %v", p, ok)
	}
	if err := m.Put(strings.Repeat("x", textMax+1), place(1)); !errors.Is(err, errs.ErrValue) {
		t.Errorf("%v, want ErrValue", err)
	}
}

// golden is a file of version 1, which must be read for ever.
const golden = "testdata/v1.hex"

func TestGolden(t *testing.T) {
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	places, torn, err := decode(b)
	_, states := history()
	if want := states[len(states)-1]; err != nil || torn || !maps.Equal(places, want) {
		t.Errorf("%v, torn %v, %v, want %v", places, torn, err, want)
	}
	if got, _ := written(t); string(got) != string(b) {
		t.Errorf("what is written now is\n%x", got)
	}
}

func FuzzDecode(f *testing.F) {
	changes, states := history()
	b := encode(states[4])
	f.Add(b)
	for i := range changes {
		b = appendChange(b, &changes[i])
	}
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		places, torn, err := decode(b)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrFormat) {
				t.Errorf("%v is not typed", err)
			}
			return
		}
		// Both ways, what was read says the same.
		again, tornAgain, err := decode(encode(places))
		if err != nil || tornAgain || !maps.Equal(again, places) {
			t.Errorf("%v comes back as %v, torn %v, %v", places, again, torn, err)
		}
	})
}
