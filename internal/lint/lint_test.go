package lint

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sizeMax keeps data files out of the search for words.
const sizeMax = 1 << 20

// textual are the names of the files that are searched for words.
var textual = []string{".go", ".md", ".mod", ".yml", ".yaml", ".txt", ".sh", ".rq", ".dd", ".json", ""}

// walk calls visit for every file of the repository that is not a tool's own.
func walk(t *testing.T, visit func(name string, content []byte)) {
	t.Helper()
	root := os.DirFS(filepath.Join("..", ".."))
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (name == ".git" || name == "bin" || strings.HasSuffix(name, "/corpus")) {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > sizeMax {
			return err
		}
		if !slices.Contains(textual, path.Ext(name)) && !strings.Contains(name, "testdata/") {
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err == nil {
			visit(name, content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRepository runs every rule over every file.
func TestRepository(t *testing.T) {
	lengths := map[string]int{}
	described := map[string]bool{}
	walk(t, func(name string, content []byte) {
		report(t, text(name, content))
		if path.Ext(name) != ".go" || strings.Contains(name, "testdata/") {
			return
		}
		s, err := parse(name, content)
		if err != nil {
			t.Error(err)
			return
		}
		for _, rule := range []func() []string{s.imports, s.clock, s.comparisons, s.docs} {
			report(t, rule())
		}
		for f, n := range s.functions() {
			lengths[f] = n
		}
		described[s.dir()] = described[s.dir()] || s.file.Doc != nil
	})
	report(t, long(lengths, longFunctions))
	for dir, ok := range described {
		if !ok {
			t.Errorf("package %q has no package comment", dir)
		}
	}
}

// report fails once for each complaint.
func report(t *testing.T, complaints []string) {
	t.Helper()
	for _, c := range complaints {
		t.Error(c)
	}
}

// TestImportRule checks the table itself: both what it lets through and what
// it stops.
func TestImportRule(t *testing.T) {
	for _, tc := range []struct {
		dir, path string
		test, ok  bool
	}{
		{"trie", module + "/mvcc", false, true},
		{"trie", module + "/epoch", false, false},
		{"mvcc", module + "/trie", false, false},
		{"epoch", module + "/trie", false, true},
		{"views", module + "/query/plan", false, true},
		{"query/plan", module + "/trie", false, false},
		{"query/rule", module + "/dict", false, false},
		{"query/rule", module + "/internal/term", false, true},
		{"views", module, false, false},
		{"views", module, true, false},
		{"cmd/triegs", module, false, true},
		{"cmd/triegs", module + "/trie", false, false},
		{"fuzz", module + "/internal/oracle", true, true},
		{"bench", module + "/epoch", false, true},
		{"bench", module + "/window", false, false},
		{"fuzz", module + "/epoch", true, false},
		{"views", module + "/internal/oracle", true, true},
		{"views", module + "/internal/oracle", false, false},
		{"", module + "/views", false, true},
		{"", module + "/cmd/triegs", false, false},
		{"somewhere", "fmt", false, false},
		{"trie", module + "/somewhere", false, false},
		{"epoch/wal", "github.com/tidwall/wal", false, true},
		{"recovery", "github.com/tidwall/wal", false, true},
		{"", "github.com/tidwall/wal", false, false},
		{"trie", "github.com/tidwall/btree", true, true},
		{"trie", "log", false, false},
		{"trie", "log/slog", false, true},
		{"trie", "math/rand", true, false},
		{"trie", "math/rand/v2", true, true},
		{"trie", "github.com/stretchr/testify/require", true, false},
	} {
		if c := importComplaint(tc.dir, tc.path, tc.test); (c == "") != tc.ok {
			t.Errorf("%q imports %s (test: %v): got %q, want allowed: %v", tc.dir, tc.path, tc.test, c, tc.ok)
		}
	}
}

// TestRulesBite gives each rule a text that breaks it and one that does not.
func TestRulesBite(t *testing.T) {
	rule := func(name string, f func(*source) []string) func(string) []string {
		return func(body string) []string {
			s, err := parse(name, []byte("package p\n"+body))
			if err != nil {
				t.Fatal(err)
			}
			return f(s)
		}
	}
	longBody := "func f() {" + strings.Repeat("\n", lengthMax) + "}"
	limit := func(s *source) []string { return long(s.functions(), nil) }
	for _, tc := range []struct {
		name      string
		rule      func(string) []string
		bad, good string
	}{
		{"imports", rule("trie/a.go", (*source).imports), `import "log"`, `import "fmt"`},
		{"clock", rule("trie/a.go", (*source).clock), "var t = time.Now()", "var t = time.Unix(0, 0)"},
		{"clock, since", rule("views/a.go", (*source).clock), "var t = time.Since(x)", "var t = other.Now()"},
		{"equal", rule("trie/a_test.go", (*source).comparisons), "var b = err == errs.ErrArity", "var b = err == nil"},
		{"not equal", rule("trie/a.go", (*source).comparisons), "var b = ErrArity != err", "var b = Errand != err"},
		{"switch", rule("trie/a.go", (*source).comparisons), "func f() { switch err { case ErrArity: } }", "func f() { switch { case errors.Is(err, ErrArity): } }"},
		{"length", rule("trie/a.go", limit), longBody, longBody[:len(longBody)-2] + "}"},
		{"doc of a function", rule("trie/a.go", (*source).docs), "func F() {}", "// F does.\nfunc F() {}"},
		{"doc of a method", rule("trie/a.go", (*source).docs), "func (t *T[V]) F() {}", "func (t *u) F() {}"},
		{"doc of a type", rule("trie/a.go", (*source).docs), "type T int", "// T is.\ntype T int"},
		{"doc in a group", rule("trie/a.go", (*source).docs), "// These are.\ntype (\nT int\nU int\n)", "type (\n// T is.\nT int\nu int\n)"},
		{"doc of a constant", rule("trie/a.go", (*source).docs), "const C = 1", "const C = 1 // C is one."},
		{"words", func(s string) []string { return text("a", []byte(s)) }, "// TO" + "DO: later", "// todos los dias"},
		{"paths", func(s string) []string { return text("a", []byte(s)) }, "cd /wo" + "rk/main", "<http://example.org/work/1>"},
		{"hosts", func(s string) []string { return text("a", []byte(s)) }, "https://proxy.gol" + "ang.org", "https://example.org"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.rule(tc.bad); len(got) == 0 {
				t.Errorf("nothing said about %q", tc.bad)
			}
			if got := tc.rule(tc.good); len(got) != 0 {
				t.Errorf("said %q about %q", got, tc.good)
			}
		})
	}
}

// TestExceptionsShrink checks that the list of long functions is held against
// the functions from both sides.
func TestExceptionsShrink(t *testing.T) {
	for _, tc := range []struct {
		lines, exception, complaints int
	}{{70, 0, 0}, {71, 0, 1}, {90, 90, 0}, {91, 90, 1}, {80, 90, 1}, {60, 90, 1}} {
		exceptions := map[string]int{}
		if tc.exception > 0 {
			exceptions["f"] = tc.exception
		}
		if got := long(map[string]int{"f": tc.lines}, exceptions); len(got) != tc.complaints {
			t.Errorf("%d lines with an exception of %d: got %q, want %d complaints", tc.lines, tc.exception, got, tc.complaints)
		}
	}
	if got := long(nil, map[string]int{"gone": 90}); len(got) != 1 {
		t.Errorf("a function that is gone: got %q", got)
	}
}
