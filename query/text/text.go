// Package text reads a query text of either form. It owns the choice between
// the forms and nothing else.
package text

import (
	"strings"
	"unicode"

	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/rule"
	"github.com/triegs/triegs/query/sparql"
)

// Parse reads a query. A text whose first word, behind comments, is SELECT,
// PREFIX or BASE in any letter case is SPARQL; any other is a rule, unless it
// begins as another kind of SPARQL query does (ASK, CONSTRUCT or DESCRIBE
// without the bracket of a rule's head), which SPARQL's parser then refuses by
// name. Errors begin with line:column and wrap ErrSyntax or ErrUnsupported.
func Parse(text string) (*query.Query, error) {
	cur, err := query.NewCursor(text)
	if err != nil {
		return nil, err
	}
	cur.SkipSpace("%#")
	rest := cur.Rest()
	n := strings.IndexFunc(rest, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if n < 0 {
		n = len(rest)
	}
	word := strings.ToUpper(rest[:n])
	cur.Advance(n)
	cur.SkipSpace("%#")
	following := cur.Rest()
	switch word {
	case "SELECT", "PREFIX", "BASE":
		return sparql.Parse(text)
	case "ASK", "CONSTRUCT", "DESCRIBE":
		if !strings.HasPrefix(following, "(") {
			return sparql.Parse(text)
		}
	}
	return rule.Parse(text)
}
