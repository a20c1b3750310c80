package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/input"
)

// maxParams is the number of bytes that the parameters of a request may have.
const maxParams = 32 << 10

// wherePrefix is in front of the column in the name of a parameter.
const wherePrefix = "where."

// params are the parameters of a request. Readers note the first that is bad, and err
// tells of it.
type params struct {
	values url.Values
	bad    error
}

// params reads the parameters, which must be among those named; "where." stands for
// columns.
func (x *exchange) params(known ...string) (*params, error) {
	raw := x.r.URL.RawQuery
	if len(raw) > maxParams {
		return nil, &fault{status: http.StatusRequestURITooLong, code: "too_large", message: "the parameters are too long"}
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badRequest("the parameters cannot be read")
	}
	for name, list := range values {
		column := strings.HasPrefix(name, wherePrefix) && slices.Contains(known, wherePrefix)
		if !column && !slices.Contains(known, name) || name == wherePrefix {
			return nil, badRequest(fmt.Sprintf("there is no parameter %.60q here", name))
		}
		if len(list) > 1 {
			return nil, badRequest(fmt.Sprintf("parameter %.60q is there twice", name))
		}
	}
	return &params{values: values}, nil
}

func (p *params) complain(format string, args ...any) {
	if p.bad == nil {
		p.bad = badRequest(fmt.Sprintf(format, args...))
	}
}

// text is a parameter as it is, "" if it is not there.
func (p *params) text(name string) string { return p.values.Get(name) }

// flag is a parameter that is 1 or 0, or not there.
func (p *params) flag(name string) bool {
	switch v := p.text(name); v {
	case "", "0":
		return false
	case "1":
		return true
	default:
		p.complain("parameter %s is %.60q: want 0 or 1", name, v)
		return false
	}
}

// number is a parameter that is an integer from low to high, fallback if it is not
// there.
func (p *params) number(name string, fallback, low, high uint64) uint64 {
	v := p.text(name)
	if v == "" {
		return fallback
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil || n < low || n > high {
		p.complain("parameter %s is %.60q: want an integer from %d to %d", name, v, low, high)
		return fallback
	}
	return n
}

// where are the terms of columns.
func (p *params) where() map[string]triegs.Term {
	terms := make(map[string]triegs.Term)
	for name, list := range p.values {
		column, ok := strings.CutPrefix(name, wherePrefix)
		if !ok {
			continue
		}
		t, err := input.ParseTerm(list[0])
		if err != nil {
			p.complain("parameter %.60q is no term as jsonl has it (a string is in double quotes): %v", name, err)
			continue
		}
		terms[column] = t
	}
	return terms
}
