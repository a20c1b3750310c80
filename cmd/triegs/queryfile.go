package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/triegs/triegs"
)

// queryFile is a file that holds one query.
type queryFile struct {
	path string
	name string // the rule's head name, else the file's base name
	text string
}

// readQuery reads and checks a query file.
func readQuery(path string) (*queryFile, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, osCause(err))
	}
	q := &queryFile{path: path, text: string(b)}
	x, err := triegs.Explain(q.text)
	if err != nil {
		return nil, q.locate(err)
	}
	if q.name = x.Name; q.name == "" {
		base := filepath.Base(path)
		q.name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return q, nil
}

// osCause takes the operation and the path off an operating-system error whose
// file is named already.
func osCause(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// position is how errors of query texts tell their line and column.
var position = regexp.MustCompile(`^(.*?: )?(\d+:\d+: )`)

// locate puts the file in front of the line and column that err begins with.
func (q *queryFile) locate(err error) error {
	if err == nil {
		return nil
	}
	return &located{place: q.path, err: err}
}

// located is an error with the file that it is about.
type located struct {
	place string
	err   error
}

// Error joins the file to the line and column, where the message has them.
func (e *located) Error() string {
	text := message(e.err)
	if m := position.FindStringSubmatch(text); m != nil {
		return e.place + ":" + m[2] + m[1] + text[len(m[0]):]
	}
	return e.place + ": " + text
}

func (e *located) Unwrap() error { return e.err }
