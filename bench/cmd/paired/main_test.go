package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMain lets the test binary be the child that measures.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-measure") {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestTable measures small streams and reads the table.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	args := strings.Fields("-workload star,hop4 -contender maps,dense,engine,api -updates 2,20 -rounds 1 -window 500 -warm 10 -slides 100 -scale .01")
	if err := run(args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var rows []string
	for _, l := range lines[2:] {
		cells := strings.Split(l, "|")
		if len(cells) != strings.Count(lines[0], "|")+1 {
			t.Errorf("row %q does not fit the head", l)
		}
		rows = append(rows, strings.Join(strings.Fields(strings.Join(cells[1:4], " ")), " "))
	}
	want := []string{
		"star maps -", "star dense -", "star engine 2", "star engine 20", "star api 2", "star api 20",
		"hop4 maps -", "hop4 dense -", "hop4 engine 2", "hop4 engine 20", "hop4 api 2", "hop4 api 20",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("rows are %q, want %q", rows, want)
	}
}

// TestRefusals runs what cannot be measured.
func TestRefusals(t *testing.T) {
	for _, args := range []string{
		"-updates x", "-workload none -rounds 1", "-contender none -workload star -rounds 1", "-unknown", "-measure {",
		"-workload star -updates 3 -rounds 1",
	} {
		stderr := os.Stderr
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		os.Stderr = null // children complain there
		if err := run(strings.Fields(args), io.Discard, io.Discard); err == nil {
			t.Errorf("%q was measured", args)
		}
		os.Stderr = stderr
		if err := null.Close(); err != nil {
			t.Error(err)
		}
	}
}
