package query_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/query"
)

func TestCursor(t *testing.T) {
	c, err := query.NewCursor("\ufeffé %x\r\n # y\n\t(b")
	if err != nil {
		t.Fatal(err)
	}
	if c.Pos() != (query.Pos{Line: 1, Col: 1}) {
		t.Errorf("starts at %v", c.Pos())
	}
	c.Advance(len("é"))
	here := c
	if c.SkipSpace("%#"); c.Rest() != "(b" || c.Pos() != (query.Pos{Line: 3, Col: 2}) {
		t.Errorf("behind the space: %q at %v", c.Rest(), c.Pos())
	}
	if here.Pos() != (query.Pos{Line: 1, Col: 2}) {
		t.Errorf("the copy moved to %v", here.Pos())
	}
	if here.SkipSpace("#"); here.Rest()[0] != '%' {
		t.Errorf("skipped a comment of another form: %q", here.Rest())
	}
	if _, err := query.NewCursor("ab\né\xe9"); !errors.Is(err, errs.ErrSyntax) || !strings.HasPrefix(err.Error(), "2:2: ") {
		t.Errorf("bad UTF-8: %v", err)
	}
	if _, err := query.NewCursor("\ufffd"); err != nil {
		t.Errorf("the replacement character itself: %v", err)
	}
}

func TestQuote(t *testing.T) {
	if got := query.Quote("a\n"); got != `"a\n"` {
		t.Error(got)
	}
	if got, want := query.Quote(strings.Repeat("é", 41)), `"`+strings.Repeat("é", 40)+`"...`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
