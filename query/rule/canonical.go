package rule

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
)

// plain are the semirings without parameters.
var plain = []string{"count", "bool", "int", "real", "maxplus", "minplus", "maxmax", "maxmin", "fuzzy", "why", "poly"}

// canonicalSemiring is the one spelling of a semiring, given by its words.
func canonicalSemiring(words []string) (string, error) {
	name := words[0]
	if len(words) == 1 {
		switch name {
		case "access", "cap", "topk":
			return "", fmt.Errorf("semiring %s needs parameters", name)
		}
		return name, nil
	}
	if words[1] == "*" || words[len(words)-1] != ")" {
		return "", fmt.Errorf("%w: a product of semirings", errs.ErrUnsupported)
	}
	return parametrised(name, words[2:len(words)-1])
}

func parametrised(name string, words []string) (string, error) {
	switch name {
	case "access":
		return levels(words)
	case "cap", "topk":
		n, err := strconv.ParseUint(strings.Join(words, " "), 10, 31)
		if err != nil || n == 0 {
			return "", fmt.Errorf("semiring %s wants a positive number", name)
		}
		return fmt.Sprintf("%s(%d)", name, n), nil
	}
	for _, p := range plain {
		if p == name {
			return "", fmt.Errorf("semiring %s has no parameters", name)
		}
	}
	return "", fmt.Errorf("%w: parameters of semiring %s", errs.ErrUnsupported, query.Quote(name))
}

// levels checks the chain of an access control.
func levels(words []string) (string, error) {
	seen := map[string]bool{}
	for i, w := range words {
		switch {
		case i%2 == 1 && w != "<", i%2 == 0 && (w == "<" || seen[w]):
			return "", fmt.Errorf("semiring access wants different levels with < between them")
		}
		seen[w] = i%2 == 0
	}
	if len(words)%2 == 0 {
		return "", fmt.Errorf("semiring access wants different levels with < between them")
	}
	return "access(" + strings.Join(words, " ") + ")", nil
}
