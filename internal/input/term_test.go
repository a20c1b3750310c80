package input

import (
	"errors"
	"strings"
	"testing"

	"github.com/triegs/triegs"
)

// TestParseTerm reads single terms, and nothing that is more or less than one.
func TestParseTerm(t *testing.T) {
	for text, want := range map[string]triegs.Term{
		`"Max"`:                         triegs.String("Max"),
		` 7 `:                           triegs.Int(7),
		`7.0`:                           triegs.Float(7),
		`true`:                          triegs.Bool(true),
		`{"iri":"http://e/a"}`:          triegs.IRI("http://e/a"),
		`{"literal":"chat","lang":"f"}`: triegs.LangString("chat", "f"),
	} {
		if got, err := ParseTerm(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]error{
		``:                  triegs.ErrSyntax,
		`Max`:               triegs.ErrSyntax,
		`"a" "b"`:           triegs.ErrSyntax,
		"\"\xff\"":          triegs.ErrSyntax,
		`null`:              triegs.ErrValue,
		`{"iri":"a b"}`:     triegs.ErrValue,
		`{"colour":"blue"}`: triegs.ErrSyntax,
	} {
		if _, err := ParseTerm(text); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", text, err, want)
		}
	}
}

// TestOffset checks that events are numbered from the offset that is asked for.
func TestOffset(t *testing.T) {
	s, err := Open([]string{Stdin}, Options{Format: "tsv", Batch: 1, Source: "s", Offset: 7, Stdin: strings.NewReader("1\tR\ta\tb\n2\tR\tb\tc\n")})
	if err != nil {
		t.Fatal(err)
	}
	for want := uint64(7); want < 9; want++ {
		b, err := s.Next()
		if err != nil || b.Offset != want {
			t.Fatalf("got offset %v, %v, want %d", b, err, want)
		}
	}
	if got := s.Events(); got != 2 {
		t.Errorf("%d events, want 2", got)
	}
}
