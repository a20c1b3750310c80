package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lengthMax is the number of lines that a function may have.
const lengthMax = 70

// longFunctions are the functions that may be longer, with their length. An
// entry is lowered or removed when its function shrinks, and none is added.
var longFunctions = map[string]int{}

// clockRooms may read the clock; to all others time is a parameter. The server needs
// it for the deadlines of connections.
var clockRooms = []string{"", "cmd/triegs", "bench", "epoch/wal", "server"}

// source is one Go file on its way through the rules.
type source struct {
	name string // slash-separated path from the root of the repository
	fset *token.FileSet
	file *ast.File
}

// parse reads one Go file.
func parse(name string, text []byte) (*source, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	return &source{name, fset, f}, err
}

// dir is the folder of the file, "" for the root.
func (s *source) dir() string {
	if d := path.Dir(s.name); d != "." {
		return d
	}
	return ""
}

// test tells whether the file is compiled into tests only.
func (s *source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

// at prefixes a complaint with its place.
func (s *source) at(n ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s: %s", s.fset.Position(n.Pos()), fmt.Sprintf(format, args...))
}

// imports applies the table of rooms.
func (s *source) imports() (out []string) {
	for _, imp := range s.file.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			return append(out, s.at(imp, "%v", err))
		}
		if c := importComplaint(s.dir(), p, s.test()); c != "" {
			out = append(out, s.at(imp, "%s", c))
		}
	}
	return out
}

// clock finds uses of the wall clock where time is a parameter.
func (s *source) clock() (out []string) {
	if s.test() || slices.Contains(clockRooms, s.dir()) {
		return nil
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if ok && pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, sel.Sel.Name) {
			out = append(out, s.at(n, "time.%s in an engine package: take the time as a parameter", sel.Sel.Name))
		}
		return true
	})
	return out
}

// sentinel tells whether e is named like an error value: ErrX or pkg.ErrX.
func sentinel(e ast.Expr) bool {
	name := ""
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	}
	rest, ok := strings.CutPrefix(name, "Err")
	return ok && rest != "" && rest[0] >= 'A' && rest[0] <= 'Z'
}

// comparisons finds errors compared by identity: a wrapped one would not match.
func (s *source) comparisons() (out []string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && (sentinel(n.X) || sentinel(n.Y)) {
				out = append(out, s.at(n, "compare errors with errors.Is, not with %s", n.Op))
			}
		case *ast.SwitchStmt:
			if n.Tag == nil {
				return true
			}
			for _, c := range n.Body.List {
				if cc, ok := c.(*ast.CaseClause); ok && slices.ContainsFunc(cc.List, sentinel) {
					out = append(out, s.at(cc, "compare errors with errors.Is, not with a switch"))
				}
			}
		}
		return true
	})
	return out
}

// functions lists the functions of a file that is not a test, with their
// length in lines.
func (s *source) functions() map[string]int {
	out := map[string]int{}
	if s.test() {
		return out
	}
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			name = receiver(f) + "." + name
		}
		lines := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1
		out[s.dir()+":"+name] = lines
	}
	return out
}

// long compares lengths of functions with the list of exceptions, both ways.
func long(lengths, exceptions map[string]int) (out []string) {
	for name, n := range lengths {
		if limit := max(lengthMax, exceptions[name]); n > limit {
			out = append(out, fmt.Sprintf("%s has %d lines, at most %d are allowed", name, n, limit))
		}
	}
	for name, limit := range exceptions {
		if n := lengths[name]; n < limit {
			out = append(out, fmt.Sprintf("%s has %d lines: lower or remove its exception of %d", name, n, limit))
		}
	}
	return out
}

// receiver names the type of a method.
func receiver(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

// docs finds exported names without a doc comment.
func (s *source) docs() (out []string) {
	if s.test() {
		return nil
	}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			hidden := d.Recv != nil && !ast.IsExported(receiver(d))
			if ast.IsExported(d.Name.Name) && !hidden && d.Doc == nil {
				out = append(out, s.at(d, "%s has no doc comment", d.Name.Name))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				out = append(out, s.docOfSpec(d, spec)...)
			}
		}
	}
	return out
}

// docOfSpec checks one declared type, or one line of constants or variables;
// the comment of a group speaks for its lines.
func (s *source) docOfSpec(d *ast.GenDecl, spec ast.Spec) (out []string) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		single := d.Doc != nil && len(d.Specs) == 1
		if ast.IsExported(spec.Name.Name) && spec.Doc == nil && !single {
			out = append(out, s.at(spec, "%s has no doc comment", spec.Name.Name))
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if ast.IsExported(name.Name) && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				out = append(out, s.at(name, "%s has no doc comment", name.Name))
			}
		}
	}
	return out
}

// The words are put together here so that this file does not hold them.
var words = []struct {
	re  *regexp.Regexp
	why string
}{
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`), "unfinished work belongs into the tracker"},
	{regexp.MustCompile("(^|[\\s\"'`(=:])/(wo" + "rk|tm" + "p|ro" + "ot|ho" + "me)(/|$)"), "a path of one machine"},
	{regexp.MustCompile(`(?i)proxy\.gol` + `ang\.org|sum\.gol` + `ang\.org|registry\.npm` + `js|py` + `pi\.org`), "the host of a registry"},
	{regexp.MustCompile(`\b(127\.0\.0\.1|local` + `host):\d`), "an address of one machine"},
}

// text finds forbidden words, line by line.
func text(name string, content []byte) (out []string) {
	for i, line := range strings.Split(string(content), "\n") {
		for _, w := range words {
			if m := w.re.FindString(line); m != "" {
				out = append(out, fmt.Sprintf("%s:%d: %q: %s", name, i+1, strings.TrimSpace(m), w.why))
			}
		}
	}
	return out
}
