// Command sides measures one subject of package bench and prints tables of
// medians, with ratios to the first contender of each.
//
// Every measurement is a process of its own, and the contenders take turns.
//
//	go run ./bench/cmd/sides -rounds 5 structures
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/triegs/triegs/bench"
	"github.com/triegs/triegs/bench/internal/turns"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "sides:", err)
		os.Exit(1)
	}
}

func run(args []string, out, progress io.Writer) error {
	f := flag.NewFlagSet("sides", flag.ContinueOnError)
	f.SetOutput(progress)
	rounds := f.Int("rounds", 5, "measurements of which the median is taken")
	size := f.Float64("size", 1, "size of everything, 1 is full")
	only := f.String("only", "", "only the cases whose name has this in it")
	measure := f.Int("measure", -1, "measure the case of this number in this process, and print JSON")
	dir := f.String("dir", "", "with -measure, the directory that cases of one name share")
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "usage: sides [flags] %s\n", strings.Join(bench.Subjects(), "|"))
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	cases, err := bench.Cases(f.Arg(0), *size)
	if err != nil {
		return err
	}
	if *measure >= 0 {
		if *measure >= len(cases) {
			return fmt.Errorf("no case %d of %s", *measure, f.Arg(0))
		}
		figures, err := cases[*measure].Measure(*dir)
		if err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(figures)
	}
	var t table
	for round := range *rounds {
		child := func(dir string, i int) error {
			c := cases[i]
			fmt.Fprintf(progress, "round %d of %d: %s, %s\n", round+1, *rounds, c.Name, c.Contender)
			var figures []bench.Figure
			err := turns.Child(&figures, "-size", fmt.Sprint(*size), "-dir", dir, "-measure", strconv.Itoa(i), c.Subject)
			t.add(c, round, figures)
			return err
		}
		if err := inDirs(cases, *only, child); err != nil {
			return err
		}
	}
	t.print(out)
	return nil
}

// inDirs calls do for each case with the given text in its name, in a directory
// that the cases of one name share and that is removed behind the last of them.
func inDirs(cases []*bench.Case, only string, do func(dir string, i int) error) (err error) {
	dir := ""
	for i, c := range cases {
		if !strings.Contains(c.Name, only) {
			continue
		}
		if dir == "" {
			if dir, err = os.MkdirTemp("", "triegs-bench-"); err != nil {
				return err
			}
		}
		err = do(dir, i)
		if err == nil && i+1 < len(cases) && cases[i+1].Name == c.Name {
			continue
		}
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			return err
		}
		dir = ""
	}
	return nil
}

// table has the figures by case, contender and name.
type table struct {
	names []string // of cases
	rows  map[string][]*row
}

type row struct {
	contender string
	figures   []string // names, in order
	units     map[string]string
	values    map[string]map[int]float64 // by round
}

func (t *table) add(c *bench.Case, round int, figures []bench.Figure) {
	if t.rows == nil {
		t.rows = make(map[string][]*row)
	}
	if !slices.Contains(t.names, c.Name) {
		t.names = append(t.names, c.Name)
	}
	rows := t.rows[c.Name]
	i := slices.IndexFunc(rows, func(r *row) bool { return r.contender == c.Contender })
	if i < 0 {
		rows = append(rows, &row{contender: c.Contender, units: make(map[string]string), values: make(map[string]map[int]float64)})
		i = len(rows) - 1
		t.rows[c.Name] = rows
	}
	r := rows[i]
	for _, f := range figures {
		if r.values[f.Name] == nil {
			r.figures = append(r.figures, f.Name)
			r.units[f.Name] = f.Unit
			r.values[f.Name] = make(map[int]float64)
		}
		r.values[f.Name][round] = f.Value
	}
}

// columns are the figures of a case, in the order of the row that has most.
func columns(rows []*row) (names []string) {
	for _, r := range rows {
		for _, f := range r.figures {
			if !slices.Contains(names, f) {
				names = append(names, f)
			}
		}
	}
	return names
}

func (t *table) print(out io.Writer) {
	for _, name := range t.names {
		rows := t.rows[name]
		figures := columns(rows)
		fmt.Fprintf(out, "\n%s:\n\n| contender | %s |\n|---|%s\n", name, strings.Join(figures, " | "), strings.Repeat("---|", len(figures)))
		for _, r := range rows {
			fmt.Fprintf(out, "| %s |", r.contender)
			for _, f := range figures {
				fmt.Fprintf(out, " %s |", cell(rows, r, f))
			}
			fmt.Fprintln(out)
		}
	}
}

// cell is the median of a figure, and that of its ratios to the base in the
// same round.
func cell(rows []*row, r *row, figure string) string {
	values := r.values[figure]
	if values == nil {
		return "-"
	}
	base := rows[slices.IndexFunc(rows, func(r *row) bool { return r.values[figure] != nil })]
	var all, ratios []float64
	for round, v := range values {
		all = append(all, v)
		if b, ok := base.values[figure][round]; ok && b != 0 {
			ratios = append(ratios, v/b)
		}
	}
	text := number(turns.Median(all))
	if unit := r.units[figure]; unit != "" {
		text += " " + unit
		if base != r {
			text += fmt.Sprintf(" (%s times)", number(turns.Median(ratios)))
		}
	}
	return text
}

// number has three digits or more.
func number(x float64) string {
	switch {
	case x < 10:
		return fmt.Sprintf("%.2f", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
