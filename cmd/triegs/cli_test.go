package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/input"
)

// call runs a command line and returns its exit code and what it printed.
func call(ctx context.Context, stdin string, args ...string) (code int, stdout, stderr string) {
	var out, complaints bytes.Buffer
	code = run(ctx, args, strings.NewReader(stdin), &out, &complaints)
	return code, out.String(), complaints.String()
}

// file writes a file into a directory of its own.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const twoEdges = "0\tr\ta\tb\n0\tr\tc\td\n"

// TestStats prints the figures and offsets of a store in both forms.
func TestStats(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for _, source := range []string{"b", "a"} {
		if code, _, complaints := call(t.Context(), twoEdges, "append", dir, "--source", source); code != exitDone {
			t.Fatal(complaints)
		}
	}
	code, out, complaints := call(t.Context(), "", "stats", dir, "--output", "json")
	if code != exitDone || complaints != "" {
		t.Fatal(code, complaints)
	}
	var got struct {
		Metrics    triegs.Metrics
		Offsets    map[string]uint64
		Watermarks map[string]time.Time
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Metrics.Epoch != 2 || got.Metrics.Facts != 2 || got.Metrics.Contributions != 4 || got.Metrics.Relations != 1 {
		t.Errorf("metrics: %+v", got.Metrics)
	}
	if len(got.Offsets) != 2 || got.Offsets["a"] != 2 || got.Offsets["b"] != 2 || len(got.Watermarks) != 0 {
		t.Errorf("offsets %v, watermarks %v", got.Offsets, got.Watermarks)
	}
	code, out, _ = call(t.Context(), "", "stats", dir)
	if want := "source a: next offset 2\nsource b: next offset 2\n"; code != exitDone || !strings.HasSuffix(out, want) || !strings.HasPrefix(out, "epoch ") {
		t.Errorf("exit %d, %q", code, out)
	}
}

// TestStatsTimes prints logical time, what waits for it, and the watermark of
// each source and of events without one, in both forms.
func TestStatsTimes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for _, source := range [][]string{{}, {"--source", "a"}} {
		args := append([]string{"append", dir, "--format", "jsonl", "--lateness", "0"}, source...)
		events := `{"relation":"r","tuple":[1],"time":7000}` + "\n" + `{"op":"commit","watermark":5000}` + "\n"
		if code, _, complaints := call(t.Context(), events, args...); code != exitDone {
			t.Fatal(complaints)
		}
	}
	code, out, complaints := call(t.Context(), "", "stats", dir, "--output", "json")
	if code != exitDone || complaints != "" {
		t.Fatal(code, complaints)
	}
	var got struct {
		Metrics    triegs.Metrics
		Watermarks map[string]time.Time
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(5, 0).UTC()
	if !got.Metrics.Time.Equal(at) || got.Metrics.Waiting != 2 {
		t.Errorf("metrics: %+v", got.Metrics)
	}
	if len(got.Watermarks) != 2 || got.Watermarks[""] != at || got.Watermarks["a"] != at {
		t.Errorf("watermarks: %v", got.Watermarks)
	}
	code, out, _ = call(t.Context(), "", "stats", dir)
	if code != exitDone {
		t.Fatal(code)
	}
	for _, want := range []string{
		"time           1970-01-01T00:00:05Z, 2 waiting, 0 expired\n",
		"late           0 accepted, 0 dropped, 0 refused, 0 outside\n",
		"source a: next offset 1, watermark 1970-01-01T00:00:05Z\n",
		"without a source: watermark 1970-01-01T00:00:05Z\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

// TestRunStats keeps the figures off standard output.
func TestRunStats(t *testing.T) {
	q := file(t, "q.rule", "q(x, y) :- r(x, y).")
	code, out, complaints := call(t.Context(), twoEdges, "run", "--query", q, "--emit", "count", "--stats")
	if code != exitDone || out != "q\t2\t2\n" || !strings.HasPrefix(complaints, "epoch ") {
		t.Errorf("exit %d, %q, %q", code, out, complaints)
	}
}

// TestInterrupted ends with a message and leaves the store as it was.
func TestInterrupted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if code, _, complaints := call(t.Context(), twoEdges, "append", dir); code != exitDone {
		t.Fatal(complaints)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, complaints := call(ctx, "0\tr\te\tf\n", "append", dir)
	if code != exitInput || !strings.Contains(complaints, "canceled") {
		t.Errorf("exit %d, %q", code, complaints)
	}
	if _, out, _ := call(t.Context(), "", "stats", dir); !strings.Contains(out, "2 (2 contributions)") {
		t.Errorf("stats: %s", out)
	}
}

// TestInterruptedSaving ends commands that save before they are through: nothing
// stands under the names that they were to make, and the store is as it was.
func TestInterruptedSaving(t *testing.T) {
	home := t.TempDir()
	dir, dest := filepath.Join(home, "store"), filepath.Join(home, "dest")
	if code, _, complaints := call(t.Context(), strings.Repeat(twoEdges, 2000), "append", dir); code != exitDone {
		t.Fatal(complaints)
	}
	interrupted := func(ctx context.Context, args ...string) {
		t.Helper()
		code, out, complaints := call(ctx, "", args...)
		if code != exitInput || out != "" || !strings.Contains(complaints, "context") || strings.Count(complaints, "\n") != 1 {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, complaints)
		}
		entries, err := os.ReadDir(home)
		if err != nil || len(entries) != 1 {
			t.Errorf("%v: left %v, %v", args, entries, err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	interrupted(over, "checkpoint", dir)
	interrupted(over, "backup", dir, dest)
	interrupted(over, "restore", dir, dest)
	interrupted(over, "repair", dir, dest)

	// In the middle: one byte a second is not through within the deadline.
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	interrupted(soon, "backup", dir, dest, "--rate", "1")

	play(t, "verify", dir)
	play(t, "backup", dir, dest)
	play(t, "verify", dest)
}

// TestWithClosing tells one failure once, and two of them both.
func TestWithClosing(t *testing.T) {
	failed, leaked := errors.New("log stopped"), errors.New("leaked")
	under := fmt.Errorf("a.tsv:1: %w", failed)
	for _, tc := range []struct {
		err, closing error
		want         string
	}{
		{nil, nil, ""},
		{under, nil, "a.tsv:1: log stopped"},
		{nil, failed, "log stopped"},
		{under, failed, "a.tsv:1: log stopped"},
		{under, leaked, "a.tsv:1: log stopped\nleaked"},
	} {
		got := withClosing(tc.err, tc.closing)
		if (got == nil) != (tc.want == "") || got != nil && got.Error() != tc.want {
			t.Errorf("%v and %v: got %v", tc.err, tc.closing, got)
		}
	}
}

// TestOpeningProgress shows each phase of an opening at once, does not flicker
// within one, and takes the line away.
func TestOpeningProgress(t *testing.T) {
	var out bytes.Buffer
	p := &progress{w: &out}
	for _, r := range []triegs.RecoveryProgress{
		{Phase: "terms", Epoch: 7},
		{Phase: "facts", Epoch: 7},
		{Phase: "log", Epoch: 7, Last: 9},
		{Phase: "log", Epoch: 8, Last: 9},
	} {
		p.opening(r)
	}
	p.done()
	const line = "\r\x1b[K"
	want := line + "opening: terms of epoch 7" + line + "opening: facts of epoch 7" + line + "opening: log, epoch 7 of 9" + line
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	(&progress{}).opening(triegs.RecoveryProgress{Phase: "log"})
}

// TestCheckpointStats shows where the newest checkpoint is and how much of the
// log an opening replays.
func TestCheckpointStats(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	stats := func() (s triegs.CheckpointStats) {
		var got struct{ Metrics triegs.Metrics }
		if err := json.Unmarshal([]byte(play(t, "stats", dir, "--output", "json")), &got); err != nil {
			t.Fatal(err)
		}
		return got.Metrics.Checkpoints
	}
	load := func() {
		t.Helper()
		if code, _, complaints := call(t.Context(), twoEdges, "append", dir); code != exitDone {
			t.Fatal(complaints)
		}
	}
	load()
	if s := stats(); s.Epoch != 0 || s.LogBytes == 0 {
		t.Errorf("without a checkpoint: %+v", s)
	}
	if out := play(t, "stats", dir); !strings.Contains(out, "none yet") {
		t.Errorf("without a checkpoint: %s", out)
	}
	play(t, "checkpoint", dir)
	if s := stats(); s.Epoch != 1 || s.LogBytes != 0 {
		t.Errorf("at once behind it: %+v", s)
	}
	load()
	if s := stats(); s.Epoch != 1 || s.LogBytes == 0 {
		t.Errorf("an epoch later: %+v", s)
	}
	if out := play(t, "stats", dir); !strings.Contains(out, "newest of epoch 1, ") {
		t.Errorf("an epoch later: %s", out)
	}
}

// TestBlankLabels gives labels of N-Triples the scope that they have: the load
// and the file, also over a restart (TERM-06), or the source, so that a replay
// sends the same events.
func TestBlankLabels(t *testing.T) {
	one := file(t, "1.nt", "_:b0 <http://e/p> \"1\" .\n")
	two := file(t, "2.nt", "_:b0 <http://e/p> \"2\" .\n")
	both := file(t, "3.nt", "_:b0 <http://e/p> \"1\" .\n_:b0 <http://e/p> \"2\" .\n")
	query := file(t, "q.rule", `q(x) :- <http://e/p>(x, "1"), <http://e/p>(x, "2").`)
	for _, tc := range []struct {
		name  string
		loads [][]string
		want  string
	}{
		{"one load of two files", [][]string{{"--input", one, "--input", two}}, "q\t0\t0\n"},
		{"two loads", [][]string{{"--input", one}, {"--input", two}}, "q\t0\t0\n"},
		{"one file", [][]string{{"--input", both}}, "q\t1\t1\n"},
		{"one file twice", [][]string{{"--input", both}, {"--input", both}}, "q\t2\t2\n"},
		{"one source, replayed", [][]string{{"--source", "s", "--input", one}, {"--source", "s", "--input", both}}, "q\t1\t1\n"},
		{"two sources", [][]string{{"--source", "s", "--input", one}, {"--source", "t", "--input", two}}, "q\t0\t0\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			play(t, "register", dir, "q", "--query", query)
			for _, load := range tc.loads {
				play(t, append([]string{"append", dir}, load...)...)
			}
			if got := play(t, "answers", dir, "q", "--count"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestResume sends a longer input again under the same source: only what is new
// is applied, although it is cut into other batches.
func TestResume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	query := file(t, "q.rule", "q(x, y) :- r(x, y).")
	play(t, "register", dir, "q", "--query", query)
	lines := strings.Repeat("0\tr\ta\tb\n", 100)
	for _, step := range []struct {
		text, batch, want string
	}{
		{lines[:8*40], "7", "q\t1\t40\n"},
		{lines[:8*90] + "bad\n", "9", "q\t1\t90\n"},
		{lines, "64", "q\t1\t100\n"},
		{lines, "1000", "q\t1\t100\n"},
	} {
		call(t.Context(), step.text, "append", dir, "--source", "s", "--batch", step.batch)
		if got := play(t, "answers", dir, "q", "--count"); got != step.want {
			t.Errorf("batches of %s: got %q, want %q", step.batch, got, step.want)
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestBrokenOutput reports a standard output that takes nothing.
func TestBrokenOutput(t *testing.T) {
	q := file(t, "q.rule", "q(x, y) :- r(x, y).")
	for _, args := range [][]string{
		{"run", "--query", q},
		{"run", "--query", q, "--emit", "count"},
		{"explain", "--query", q},
		{"demo"},
	} {
		var complaints bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(twoEdges), brokenPipe{}, &complaints)
		if code != exitInput || !strings.Contains(complaints.String(), "broken pipe") {
			t.Errorf("%v: exit %d, %q", args, code, complaints.String())
		}
	}
}

// TestNoProgressInFiles keeps the progress line off a standard error that is
// not a terminal, which a buffer and a file are not.
func TestNoProgressInFiles(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, a := range []*app{{stderr: f}, {stderr: &bytes.Buffer{}}} {
		if p := a.newProgress(); p.w != nil {
			t.Errorf("progress on %T", a.stderr)
		}
	}
}

// TestLocate gives errors of Append their line, and leaves those alone that are
// not about the input.
func TestLocate(t *testing.T) {
	b := &input.Batch{File: "a.tsv", Lines: []int{4, 7}}
	b.Events = make([]triegs.Event, 2)
	for _, tc := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("triegs: event 1: %w", triegs.ErrNoSuchFact), "a.tsv:7: event 1: no such fact"},
		{fmt.Errorf("triegs: %w: of query q, see event 1: x", triegs.ErrOverflow), "a.tsv:4: the batch of 2 events that begins here: count does not fit in int64: of query q, see event 1: x"},
		{fmt.Errorf("triegs: %w", triegs.ErrReadOnly), "store is read-only"},
		{context.Canceled, "context canceled"},
	} {
		got := b.Locate(tc.err)
		if !errors.Is(got, tc.err) || message(got) != tc.want {
			t.Errorf("got %q, want %q", message(got), tc.want)
		}
	}
}
