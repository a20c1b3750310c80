// Command paired pairs TrieGS with programs that were written by hand for one
// query each, and prints a table of medians and ratios.
//
// Every measurement is a process of its own, and the contenders take turns, so
// that whatever else the machine does meets all of them. Figures are by the CPU
// time of all threads of the process, which a busy machine does not stretch as it
// does the time on the wall. See README.md of package bench.
//
//	go run ./bench/cmd/paired -workload path3,star,snb -updates 2,200,2000 -rounds 5
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/triegs/triegs/bench"
	"github.com/triegs/triegs/bench/internal/turns"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "paired:", err)
		os.Exit(1)
	}
}

// setting is what the flags say.
type setting struct {
	workloads  []string
	contenders []string
	updates    []int
	rounds     int
	base       bench.Run
	child      string
	raw        bool
}

func parse(args []string, usage io.Writer) (*setting, error) {
	var s setting
	var workloads, contenders, updates string
	f := flag.NewFlagSet("paired", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&workloads, "workload", "path3,star,snb,hop4,hop4zipf", "workloads")
	f.StringVar(&contenders, "contender", "maps,dense,engine,api", "contenders; maps is what the others are compared with")
	f.StringVar(&updates, "updates", "2,200,2000", "updates an epoch")
	f.IntVar(&s.rounds, "rounds", 5, "measurements of which the median is taken")
	f.IntVar(&s.base.Window, "window", 200000, "edges in the window")
	f.IntVar(&s.base.Warm, "warm", 20000, "slides before the measured ones")
	f.IntVar(&s.base.Slides, "slides", 180000, "measured slides")
	f.Float64Var(&s.base.Scale, "scale", 1, "scale of the numbers of vertices, 1 for a window of 200,000")
	f.BoolVar(&s.raw, "raw", false, "print every measurement as a line of JSON as well")
	f.StringVar(&s.child, "measure", "", "measure what this JSON says in this process, and print JSON")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	s.workloads, s.contenders = strings.Split(workloads, ","), strings.Split(contenders, ",")
	for _, u := range strings.Split(updates, ",") {
		n, err := strconv.Atoi(u)
		if err != nil {
			return nil, fmt.Errorf("updates: %w", err)
		}
		s.updates = append(s.updates, n)
	}
	return &s, nil
}

func run(args []string, out, progress io.Writer) error {
	s, err := parse(args, progress)
	if err != nil {
		return err
	}
	if s.child != "" {
		return measure(s.child, out)
	}
	printHead(out)
	for _, w := range s.workloads {
		results, err := s.rotate(w, out, progress)
		if err != nil {
			return err
		}
		s.printRows(out, results)
	}
	return nil
}

// measure is what a child process does.
func measure(text string, out io.Writer) error {
	var r bench.Run
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return fmt.Errorf("run %q: %w", text, err)
	}
	res, err := bench.Measure(r)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(res)
}

// key is a row of the table.
type key struct {
	contender bench.Contender
	updates   int
}

// rows lists the rows of a workload. The programs by hand know no epochs and
// have one row each.
func (s *setting) rows() (keys []key) {
	for _, c := range s.contenders {
		for i, u := range s.updates {
			byHand := bench.Contender(c) == bench.Maps || bench.Contender(c) == bench.Dense
			if !byHand || i == 0 {
				keys = append(keys, key{bench.Contender(c), u})
			}
		}
	}
	return keys
}

// rotate measures every row of a workload once a round.
func (s *setting) rotate(workload string, out, progress io.Writer) (map[key][]*bench.Result, error) {
	results := make(map[key][]*bench.Result)
	for round := range s.rounds {
		fmt.Fprintf(progress, "%s, round %d of %d\n", workload, round+1, s.rounds)
		for _, k := range s.rows() {
			r := s.base
			r.Workload, r.Contender, r.Updates = workload, k.contender, k.updates
			res, err := child(r)
			if err != nil {
				return nil, err
			}
			if s.raw {
				if err := json.NewEncoder(out).Encode(res); err != nil {
					return nil, err
				}
			}
			results[k] = append(results[k], res)
		}
	}
	return results, nil
}

// child measures in a new process.
func child(r bench.Run) (*bench.Result, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var res bench.Result
	return &res, turns.Child(&res, "-measure", string(text))
}

// median of a figure over the rounds.
func median(results []*bench.Result, figure func(*bench.Result) float64) float64 {
	var all []float64
	for _, r := range results {
		all = append(all, figure(r))
	}
	return turns.Median(all)
}

func speed(r *bench.Result) float64    { return r.PerCPU }
func heap(r *bench.Result) float64     { return float64(r.Heap) }
func resident(r *bench.Result) float64 { return float64(r.Resident) }

// withoutTerms is the heap but for the dictionary, which programs by hand do
// not have.
func withoutTerms(r *bench.Result) float64 { return float64(r.Heap - r.Internals.Dictionary) }

func printHead(out io.Writer) {
	fmt.Fprintln(out, "| workload | contender | updates an epoch | updates/CPU s | of maps | of dense | heap MB | of maps | without terms | resident MB | of maps | writes per update | per alias | woken | bytes/update | GC share | GC later |")
	fmt.Fprintln(out, strings.Repeat("|---", 17)+"|")
}

// printRows prints medians. Ratios of speed are medians of the ratios within
// each round.
func (s *setting) printRows(out io.Writer, results map[key][]*bench.Result) {
	maps := results[key{bench.Maps, s.updates[0]}]
	dense := results[key{bench.Dense, s.updates[0]}]
	ratio := func(rs, base []*bench.Result, figure, baseFigure func(*bench.Result) float64) string {
		var all []float64
		for i := range min(len(rs), len(base)) {
			all = append(all, figure(rs[i])/baseFigure(base[i]))
		}
		if len(all) == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", turns.Median(all))
	}
	for _, k := range s.rows() {
		rs := results[k]
		m := func(f func(*bench.Result) float64) float64 { return median(rs, f) }
		updates := fmt.Sprint(k.updates)
		if k.contender == bench.Maps || k.contender == bench.Dense {
			updates = "-"
		}
		fmt.Fprintf(out, "| %s | %s | %s | %.0f k | %s | %s | %.1f | %s | %s | %.1f | %s | %.2f | %.2f | %.2f | %.1f | %.2f %% | %.2f %% |\n",
			rs[0].Workload, k.contender, updates, m(speed)/1e3,
			ratio(rs, maps, speed, speed), ratio(rs, dense, speed, speed),
			m(heap)/(1<<20), ratio(rs, maps, heap, heap), ratio(rs, maps, withoutTerms, heap),
			m(resident)/(1<<20), ratio(rs, maps, resident, resident),
			m(func(r *bench.Result) float64 { return r.Writes }),
			m(func(r *bench.Result) float64 { return r.WritesPerAlias }),
			m(func(r *bench.Result) float64 { return r.Woken }),
			m(func(r *bench.Result) float64 { return r.Allocated }),
			100*m(func(r *bench.Result) float64 { return r.CollectShare }),
			100*m(func(r *bench.Result) float64 { return r.CollectLater }))
	}
}
