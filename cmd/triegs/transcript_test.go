package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/triegs/triegs"
)

// TestTranscripts plays the command lines in testdata, each file in a directory
// of its own. The commands of a file are
//
//	file name=NAME [gzip]   writes a file
//	stdin                   what the next triegs command reads
//	triegs                  runs the command line below it; positions are TOKEN1,
//	                        TOKEN2 and so on, in the order in which they come
//	ls dir=DIR              lists a directory
//	hold dir=DIR            opens a store and keeps it locked, release lets go
//	damage dir=DIR          flips a bit in the middle of the log of a store
//	damage newest=PATTERN   flips one in the last file by name that matches
//	remove name=PATTERN     removes files
//
// Run with -rewrite to take what is printed for what is wanted, then read the
// difference.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Chdir(t.TempDir())
		p := &player{t: t}
		defer p.release()
		datadriven.RunTest(t, path, p.play)
	})
}

// player is the state of one transcript.
type player struct {
	t      *testing.T
	stdin  string
	held   *triegs.DB
	tokens []string
}

func (p *player) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	var name, dir string
	d.MaybeScanArgs(t, "name", &name)
	d.MaybeScanArgs(t, "dir", &dir)
	switch d.Cmd {
	case "file":
		content := []byte(d.Input + "\n")
		if d.HasArg("gzip") {
			content = compress(content)
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return ""
	case "stdin":
		p.stdin = d.Input + "\n"
		return ""
	case "triegs":
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), words(p.positions(d.Input)), strings.NewReader(p.stdin), &stdout, &stderr)
		p.stdin = ""
		out := fmt.Sprintf("exit %d\n", code)
		for line := range strings.Lines(stderr.String()) {
			out += "stderr: " + line
		}
		return p.steady(out + stdout.String())
	case "ls":
		return list(t, dir)
	case "hold":
		db, err := triegs.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.held = db
		return ""
	case "release":
		p.release()
		return ""
	case "damage":
		if d.HasArg("newest") {
			d.ScanArgs(t, "newest", &name)
			flip(t, matching(t, name)[0])
		} else {
			flip(t, largest(t, dir))
		}
		return ""
	case "remove":
		for _, path := range matching(t, name) {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		return ""
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return ""
}

// varying is what differs between two runs besides the directory: the holder of
// a lock, where in the log a damage was met, and whatever depends on the clock.
var varying = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`process \d+`), "process PID"},
	{regexp.MustCompile(`offset \d+, epoch entry \d+`), "offset N, epoch entry N"},
	{regexp.MustCompile(`\d+ bytes written`), "N bytes written"},
	{regexp.MustCompile(`\d+ bytes of log`), "N bytes of log"},
	{regexp.MustCompile(`"took": \d+`), `"took": N`},
	{regexp.MustCompile(`of store [0-9a-f]{32}, this is [0-9a-f]{32}`), "of store ID, this is ID"},
	{regexp.MustCompile(`checkpoint/\d+\.sst`), "checkpoint/N.sst"},
	{regexp.MustCompile(`block \d+/\d+: crc32c checksum mismatch \w+ != \w+`), "checksum mismatch"},
}

// steady replaces what differs between two runs.
func (p *player) steady(out string) string {
	dir, err := os.Getwd()
	if err != nil {
		p.t.Fatal(err)
	}
	out = strings.ReplaceAll(out, dir, "HERE")
	for _, v := range varying {
		out = v.what.ReplaceAllString(out, v.with)
	}
	return p.names(out)
}

// tokenText is what a position looks like.
var tokenText = regexp.MustCompile(`\bt1\.[\w-]{54}`)

// names replaces positions by their names.
func (p *player) names(out string) string {
	return tokenText.ReplaceAllStringFunc(out, func(t string) string {
		if !slices.Contains(p.tokens, t) {
			p.tokens = append(p.tokens, t)
		}
		return fmt.Sprintf("TOKEN%d", slices.Index(p.tokens, t)+1)
	})
}

// positions replaces the names of positions by what they stand for.
func (p *player) positions(line string) string {
	for i, t := range slices.Backward(p.tokens) {
		line = strings.ReplaceAll(line, fmt.Sprintf("TOKEN%d", i+1), t)
	}
	return line
}

func (p *player) release() {
	if p.held == nil {
		return
	}
	if err := p.held.Close(); err != nil {
		p.t.Error(err)
	}
	p.held = nil
}

// words splits a command line at blanks and line ends, outside of single
// quotes.
func words(line string) []string {
	var out []string
	quoted, inWord := false, false
	for _, c := range line {
		switch {
		case c == '\'':
			quoted = !quoted
			if !inWord {
				out, inWord = append(out, ""), true
			}
		case !quoted && (c == ' ' || c == '\n'):
			inWord = false
		default:
			if !inWord {
				out, inWord = append(out, ""), true
			}
			out[len(out)-1] += string(c)
		}
	}
	return out
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(content)
	w.Close()
	return b.Bytes()
}

// list lists what is in a directory, without descending.
func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return "not there\n"
	}
	if err != nil {
		t.Fatal(err)
	}
	var out string
	for _, e := range entries {
		out += e.Name() + "\n"
	}
	return out
}

// matching lists the paths that match a pattern, the last by name first.
func matching(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: nothing matches (%v)", pattern, err)
	}
	slices.Reverse(paths)
	return paths
}

// largest finds the largest file below dir, which is a segment of the log of a
// store that has no checkpoint.
func largest(t *testing.T, dir string) (name string) {
	t.Helper()
	var size int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > size {
			name, size = path, info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// flip changes one bit in the middle of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 0x10
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
