package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
)

// CompileWithTree compiles a full acyclic query over the given tree instead of the
// best one; one of another class is errs.ErrUnsupported. It is there for tests that
// compare trees. The tree is written as Tree does,
// where "->" may stand for the arrow; aliases are named as by AliasName. A text
// that is no tree of the query is errs.ErrValue.
func CompileWithTree(q *query.Query, tree string) (*Plan, error) {
	p, _, err := prepare(q)
	if err != nil {
		return nil, err
	}
	if len(p.Extra) > 0 || len(p.findClusters()) > 0 {
		return nil, q.HeadPos.Unsupported("the query is %s, and trees are read for full acyclic queries only", p.Class)
	}
	r := &treeReader{p: p, rest: strings.ReplaceAll(tree, "->", "→")}
	root, err := r.node(true)
	if err == nil && r.rest != "" {
		err = fmt.Errorf("%q is left over", r.rest)
	}
	if err == nil {
		g := p.top()
		p.Nodes = g.number(root)
		p.Score = g.score(p.Nodes)
		err = p.check()
	}
	if err != nil {
		return nil, fmt.Errorf("tree %q: %w: %w", tree, errs.ErrValue, err)
	}
	return p, nil
}

// treeReader reads the notation of Tree.
type treeReader struct {
	p    *Plan
	rest string
}

// accept skips white space and then the token, if it is next.
func (r *treeReader) accept(token string) bool {
	r.rest = strings.TrimLeftFunc(r.rest, unicode.IsSpace)
	rest, ok := strings.CutPrefix(r.rest, token)
	if ok {
		r.rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	}
	return ok
}

func (r *treeReader) node(root bool) (*shape, error) {
	t := &shape{alias: -1}
	var err error
	if r.accept("[") {
		t.schema, err = r.schema()
	} else {
		t.alias, err = r.alias()
	}
	if err != nil || !r.accept("→") {
		return t, err
	}
	braces := r.accept("{")
	for {
		c, err := r.node(false)
		if err != nil {
			return nil, err
		}
		t.children = append(t.children, c)
		if !(braces || root) || !r.accept(",") {
			break
		}
	}
	if braces && !r.accept("}") {
		return nil, fmt.Errorf("} expected at %q", r.rest)
	}
	return t, nil
}

func (r *treeReader) schema() (vars []query.Var, err error) {
	for !r.accept("]") {
		if len(vars) > 0 && !r.accept(",") {
			return nil, fmt.Errorf("] expected at %q", r.rest)
		}
		end := strings.IndexAny(r.rest, ",]")
		if end < 0 {
			return nil, fmt.Errorf("] expected at %q", r.rest)
		}
		name := strings.TrimSpace(r.rest[:end])
		v := slices.Index(r.p.Query.Vars, name)
		if v < 0 || name == "" {
			return nil, fmt.Errorf("no variable %q", name)
		}
		vars = append(vars, query.Var(v))
		r.rest = r.rest[end:]
	}
	slices.Sort(vars)
	return slices.Compact(vars), nil
}

func (r *treeReader) alias() (int, error) {
	name := r.rest[:nameLen(r.rest)]
	r.rest = r.rest[len(name):]
	for i := range r.p.Aliases {
		if r.p.AliasName(i) == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no alias %q", name)
}

// nameLen returns the length of the alias name at the front of s.
func nameLen(s string) int {
	n := 0
	if quoted, err := strconv.QuotedPrefix(s); err == nil {
		n = len(quoted)
	}
	for n < len(s) {
		c, size := utf8.DecodeRuneInString(s[n:])
		if c != '#' && !isNameRune(c) {
			break
		}
		n += size
	}
	return n
}

func isNameRune(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// quoteName quotes what would not be read back as one name.
func quoteName(s string) string {
	if s == "" || strings.ContainsFunc(s, func(c rune) bool { return !isNameRune(c) }) {
		return strconv.Quote(s)
	}
	return s
}
