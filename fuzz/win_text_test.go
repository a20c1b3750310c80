package fuzz

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
)

// word writes a number or a flag of a line, nothing for the zero value.
func word(name string, v any) string {
	switch v := v.(type) {
	case bool:
		if v {
			return " " + name
		}
	case int64:
		if v != 0 {
			return fmt.Sprintf(" %s=%d", name, v)
		}
	case string:
		if v != "" {
			return " " + name + "=" + v
		}
	}
	return ""
}

// String writes the case as lines that parseWin reads: what holds for all of it,
// the queries and the events as randq has them, the steps.
func (c *winCase) String() string {
	var s strings.Builder
	s.WriteString("windows" + word("event-time", c.eventTime) + word("lateness", c.lateness) + word("policy", int64(c.policy)) +
		word("sources", int64(c.sources)) + word("declared", c.declared) + word("idle", c.idle) + word("anchors", int64(c.anchors)) + "\n")
	for i := range c.queries {
		if c.queries[i].option {
			s.WriteString("option\n")
		}
		one := randq.Case{Queries: []randq.Query{c.queries[i].Query}}
		s.WriteString(one.String())
	}
	for i := range c.acts {
		s.WriteString(c.acts[i].String() + "\n")
	}
	return s.String()
}

// String writes one step.
func (a *winAct) String() string {
	s := a.do + word("at", a.at) + word("clock", a.wall) + word("source", int64(a.source)) + word("again", int64(a.again)) +
		word("ignore", a.ignore) + word("silent", a.silent) + word("untimed", a.untimed) +
		word("query", int64(a.query)) + word("rel", a.rel) + word("span", a.span)
	for _, e := range a.events {
		sign := "+"
		if e.Delete {
			sign, e.Delete = "-", false // else it is written without a time
		}
		one := randq.Case{Epochs: []randq.Batch{{Events: []oracle.Event{e}}}}
		_, line, _ := strings.Cut(one.String(), "\n")
		s += "\n" + sign + strings.TrimSuffix(line, "\n")[1:]
	}
	return s
}

// parseWin reads what String writes. Blank lines and lines that begin with # are
// passed over.
func parseWin(text string) (*winCase, error) {
	c := new(winCase)
	option := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		first, rest, _ := strings.Cut(line, " ")
		switch first {
		case "", "#":
		case "windows":
			w := readWords(rest)
			*c = winCase{
				eventTime: w.flags["event-time"], lateness: w.numbers["lateness"], policy: triegs.LatePolicy(w.numbers["policy"]),
				sources: int(w.numbers["sources"]), declared: w.flags["declared"], idle: w.numbers["idle"], anchors: int(w.numbers["anchors"]),
			}
		case "option":
			option = true
		case "query":
			one, err := randq.Parse(line)
			if err != nil {
				return nil, err
			}
			c.queries = append(c.queries, winQuery{one.Queries[0], option})
			option = false
		case "+", "-":
			one, err := randq.Parse("epoch\n" + line)
			if err != nil || len(c.acts) == 0 {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			last := &c.acts[len(c.acts)-1]
			last.events = append(last.events, one.Epochs[0].Events...)
		default:
			w := readWords(rest)
			c.acts = append(c.acts, winAct{
				do: first, at: w.numbers["at"], wall: w.numbers["clock"], source: int(w.numbers["source"]), again: int(w.numbers["again"]),
				ignore: w.flags["ignore"], silent: w.flags["silent"], untimed: w.flags["untimed"],
				query: int(w.numbers["query"]), rel: w.texts["rel"], span: w.numbers["span"],
			})
		}
	}
	return c, nil
}

// words are the numbers, texts and flags of a line.
type words struct {
	numbers map[string]int64
	texts   map[string]string
	flags   map[string]bool
}

func readWords(line string) words {
	w := words{map[string]int64{}, map[string]string{}, map[string]bool{}}
	for _, f := range strings.Fields(line) {
		name, value, valued := strings.Cut(f, "=")
		if !valued {
			w.flags[name] = true
			continue
		}
		w.texts[name] = value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			w.numbers[name] = n
		}
	}
	return w
}

// A case is read back as it was.
func TestWindowTexts(t *testing.T) {
	for seed := range uint64(20) {
		for _, eventTime := range []bool{false, true} {
			c := drawWin(seed, eventTime, winSteps)
			text := c.String()
			got, err := parseWin(text)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if again := got.String(); again != text {
				t.Fatalf("seed %d: read back as\n%s\nfrom\n%s", seed, again, text)
			}
			if !reflect.DeepEqual(got.acts, c.acts) {
				t.Fatalf("seed %d: the steps are others", seed)
			}
		}
	}
}

// TestWindowCases runs the cases that once failed, and a few that show much in
// little.
func TestWindowCases(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "windows", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d cases, error %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			c, err := parseWin(string(text))
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(3) {
				if _, err := playWin(c, seed); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
}
