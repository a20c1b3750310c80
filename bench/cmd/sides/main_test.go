package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/triegs/triegs/bench"
)

// TestMain lets the test binary be the child that measures.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-measure") {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestRun measures a few cases at a small size.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(strings.Fields("-rounds 2 -size .005 -only star answers"), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nstar:\n", "| slices | ", "| views | ", "| terms | ", " times) |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the tables:\n%s", want, out.String())
		}
	}
	for _, args := range []string{"", "weather", "-measure 1000 answers", "-unknown"} {
		if err := run(strings.Fields(args), io.Discard, io.Discard); err == nil {
			t.Errorf("%q was measured", args)
		}
	}
}

// TestCells checks medians and ratios: a ratio is that of figures of one round.
func TestCells(t *testing.T) {
	var table table
	add := func(contender string, round int, ns float64) {
		table.add(&bench.Case{Name: "n", Contender: contender}, round, []bench.Figure{{Name: "f", Value: ns, Unit: "ns"}})
	}
	for round, slow := range []float64{1, 10, 3} {
		add("base", round, 100*slow)
		add("other", round, 250*slow)
	}
	table.add(&bench.Case{Name: "n", Contender: "none"}, 0, nil)
	rows := table.rows["n"]
	for i, want := range []string{"300 ns", "750 ns (2.50 times)", "-"} {
		if got := cell(rows, rows[i], "f"); got != want {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
}
