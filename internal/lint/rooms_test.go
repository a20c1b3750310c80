package lint

import (
	"slices"
	"strings"
)

// module is the import path of the root package.
const module = "github.com/triegs/triegs"

// rooms is the table of the architecture: what each room knows of. A room may
// import whatever can be reached through it, itself and its own subfolders,
// and the commons. A room that does not exist yet may stand here already.
var rooms = map[string][]string{
	"":                 {"recovery", "checkpoint", "txn", "epoch", "window", "catalog", "rootvec", "views", "query", "query/rule", "query/sparql", "dict"},
	"cmd/triegs":       {"", "server", "internal/input", "internal/output"},
	"server":           {"", "internal/input", "internal/output"},
	"recovery":         {"checkpoint", "epoch", "txn", "catalog"},
	"checkpoint":       {"rootvec", "window", "dict", "catalog"},
	"txn":              {"epoch", "window", "dict"},
	"epoch":            {"views", "rootvec", "window", "dict", "catalog"},
	"window":           {"trie", "mvcc", "query"},
	"catalog":          {"query", "query/plan", "query/text", "semiring"},
	"rootvec":          {"trie", "mvcc"},
	"views":            {"trie", "semiring", "query/plan"},
	"query":            {"semiring"},
	"query/rule":       {"query"},
	"query/sparql":     {"query"},
	"query/text":       {"query", "query/rule", "query/sparql"},
	"query/hypergraph": {"query"},
	"query/plan":       {"query", "query/hypergraph"},
	"semiring":         {},
	"dict":             {"mvcc"},
	"trie":             {"mvcc"},
	"mvcc":             {},
	"summary":          {""},
	"fuzz":             {"", "summary"},
	"bench":            {"", "epoch", "views", "rootvec", "trie", "catalog", "query"},

	"internal/term":      {},
	"internal/errs":      {},
	"internal/invariant": {},
	"internal/lint":      {},
	"internal/input":     {"", "internal/output"},
	"internal/output":    {""},
	"internal/oracle":    {"query", "semiring"},
	"internal/randq":     {"internal/oracle"},
}

// commons may be imported by every room.
var commons = []string{"internal/term", "internal/errs", "internal/invariant"}

// testOnly may be imported by the tests of every room, and by the rooms that
// consist of tests: oracles, generators, and the parsers, so that a test can
// say a query as text.
var testOnly = []string{"internal/oracle", "internal/randq", "query/text"}

// testRooms hold nothing but tests and measurements.
var testRooms = []string{"fuzz", "bench", "internal/randq"}

// outside lists modules that only some rooms may know of: the log library, the
// checkpoint store and the cache stay behind one wrapper each, and the SQL engine
// is for comparisons.
var outside = map[string][]string{
	"github.com/tidwall/wal":         {"epoch", "recovery"},
	"github.com/cockroachdb/pebble":  {"checkpoint", "recovery"},
	"github.com/dgraph-io/ristretto": {"dict"},
	"github.com/alecthomas/kong":     {"cmd/triegs"},
	"modernc.org/sqlite":             {"fuzz"},
}

// forbidden lists imports that nothing may use, with the reason.
var forbidden = map[string]string{
	"math/rand":                     "use math/rand/v2 with a fixed seed",
	"log":                           "use *slog.Logger from Options",
	"io/ioutil":                     "use io and os",
	"github.com/pkg/errors":         "use errors and fmt.Errorf with %w",
	"github.com/cockroachdb/errors": "use errors and fmt.Errorf with %w",
	"github.com/stretchr/testify":   "plain got and want read as well",
}

// room gives the room of a folder of the repository: the longest entry of the
// table that is the folder or a parent of it. The root holds only itself.
func room(dir string) (string, bool) {
	for d := dir; d != ""; {
		if _, ok := rooms[d]; ok {
			return d, true
		}
		i := strings.LastIndexByte(d, '/')
		if i < 0 {
			return "", false
		}
		d = d[:i]
	}
	return "", dir == ""
}

// reaches tells whether the table leads from one room to another.
func reaches(from, to string) bool {
	seen := map[string]bool{}
	var walk func(r string) bool
	walk = func(r string) bool {
		if r == to {
			return true
		}
		if seen[r] {
			return false
		}
		seen[r] = true
		return slices.ContainsFunc(rooms[r], walk)
	}
	return walk(from)
}

// importComplaint says why a file of folder dir must not import path, or "".
func importComplaint(dir, path string, test bool) string {
	under := func(p, prefix string) bool { return p == prefix || strings.HasPrefix(p, prefix+"/") }
	for f, why := range forbidden {
		if path == f || (strings.Contains(f, ".") && under(path, f)) {
			return "forbidden import " + path + ": " + why
		}
	}
	from, ok := room(dir)
	if !ok {
		return "room " + dir + " is not in the table of rooms"
	}
	for m, in := range outside {
		if under(path, m) && !slices.Contains(in, from) {
			return path + " may be known in " + strings.Join(in, " and ") + " only"
		}
	}
	if !under(path, module) {
		return ""
	}
	target := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
	to, ok := room(target)
	switch {
	case !ok:
		return "room " + target + " is not in the table of rooms"
	case slices.Contains(commons, to):
		return ""
	case slices.Contains(testOnly, to) && (test || slices.Contains(testRooms, from)):
		return ""
	case to == "" && from != "" && !slices.Contains(rooms[from], ""):
		return from + " may not import the root package"
	case slices.Contains(rooms[from], "") && to != "" && to != from:
		// What measures the insides lists each room that it measures.
		if slices.Contains(rooms[from], to) {
			return ""
		}
		return from + " may import the root package only, not " + to
	case !reaches(from, to):
		return from + " must not know of " + to
	}
	return ""
}
