package semiring

import (
	"errors"
	"strings"
	"testing"

	"github.com/triegs/triegs/internal/errs"
	"github.com/triegs/triegs/internal/term"
)

func TestNames(t *testing.T) {
	for _, tc := range []struct {
		spec, canonical string // canonical "" for ErrSyntax
	}{
		{"count", "count"},
		{" bool\n", "bool"},
		{"access(public<secret)", "access(public < secret)"},
		{"access ( \"public\"  < \"top secret\" < \"a\\\"b\" < été )", `access(public < "top secret" < "a\"b" < été)`},
		{"access(only)", "access(only)"},
		{`access("")`, `access("")`},
		{"cap(007)", "cap(7)"},
		{"cap( 9223372036854775807 )", "cap(9223372036854775807)"},
		{"topk(1048576)", "topk(1048576)"},
		{"why*access(a<b)*minplus", "why * access(a < b) * minplus"},
		{"mine", "mine"},
		{"mine * count", "mine * count"},
		{"_x1", "_x1"},
		{"Count", "Count"},
		{"", ""},
		{"count bool", ""},
		{"count()", ""},
		{"count(3)", ""},
		{"cap", ""},
		{"cap()", ""},
		{"cap(0)", ""},
		{"cap(-1)", ""},
		{"cap(1.5)", ""},
		{"cap(9223372036854775808)", ""},
		{"cap(3", ""},
		{"topk(1048577)", ""},
		{"access", ""},
		{"access()", ""},
		{"access(a <)", ""},
		{"access(a < a)", ""},
		{`access(a < "a")`, ""},
		{"access(a, b)", ""},
		{"access(top-secret)", ""},
		{`access("a"@en)`, ""},
		{"access(<a>)", ""},
		{`access("a)`, ""},
		{"count *", ""},
		{"* count", ""},
		{"count * * count", ""},
		{strings.Repeat("count * ", 15) + "count", strings.Repeat("count * ", 15) + "count"},
		{strings.Repeat("count * ", 16) + "count", ""},
		{"mine(3)", ""},
		{"1x", ""},
		{"min-plus", ""},
		{"sum", ""},
		{"min", ""},
		{"top(3)", ""},
		{"count * distinct", ""},
	} {
		got, err := Canonical(tc.spec)
		if got != tc.canonical || (err == nil) != (tc.canonical != "") || err != nil && !errors.Is(err, errs.ErrSyntax) {
			t.Errorf("Canonical(%q) = %q, %v, want %q", tc.spec, got, err, tc.canonical)
		}
	}
}

func TestParse(t *testing.T) {
	env := Env{Terms: dictionary{}, Extra: map[string]Definition{"naturals": definitions["naturals"], "bad": {}}}
	for _, tc := range []struct {
		spec, name string
		want       error
	}{
		{"naturals", "naturals", nil},
		{"naturals*cap(3)", "naturals * cap(3)", nil},
		{"top( 3 )", "top(3)", nil},
		{"sum", "sum", nil},
		{"max", "max", nil},
		{"sum * count", "", errs.ErrSyntax},
		{"top(2) * maxmax", "", errs.ErrSyntax},
		{"top(0)", "", errs.ErrSyntax},
		{"mine", "", errs.ErrUnsupported},
		{"count * mine", "", errs.ErrUnsupported},
		{"bad", "", errs.ErrValue},
	} {
		k, err := Parse(tc.spec, env)
		if !errors.Is(err, tc.want) || err == nil && k.Name() != tc.name {
			t.Errorf("Parse(%q) = %v, %v", tc.spec, k, err)
		}
	}
	if _, err := Parse("min", Env{}); !errors.Is(err, errs.ErrValue) {
		t.Errorf("min without terms: %v", err)
	}
	for name, want := range map[string]bool{"count": true, "top": true, "sum": true, "mine": false, "": true, "a-b": true, "Ünter_1": false} {
		if Reserved(name) != want {
			t.Errorf("Reserved(%q) is %v", name, !want)
		}
	}
}

// FuzzParse checks that what is accepted has one spelling, which is accepted, and
// that Parse knows each name that is not left to the user.
func FuzzParse(f *testing.F) {
	for _, s := range subjects() {
		f.Add(s.spec)
	}
	for _, s := range []string{`access("a b" < c)`, "cap(1)*mine", "topk(0)", "access(a<b", "\xff", "access(\"\\u00e9\")", "min"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		canonical, err := Canonical(spec)
		k, made := Parse(spec, Env{})
		if err != nil {
			if !errors.Is(err, errs.ErrSyntax) {
				t.Fatalf("Canonical(%q): %v", spec, err)
			}
			return
		}
		if again, err := Canonical(canonical); again != canonical || err != nil {
			t.Fatalf("%q reads as %q, which reads as %q, %v", spec, canonical, again, err)
		}
		switch {
		case made == nil && k.Name() != canonical:
			t.Fatalf("%q is named %q, want %q", spec, k.Name(), canonical)
		case made != nil && !errors.Is(made, errs.ErrUnsupported):
			t.Fatalf("Canonical takes %q, Parse says %v", spec, made)
		}
	})
}

// FuzzLift hands any text to algebras that read strings.
func FuzzLift(f *testing.F) {
	for _, s := range []string{"1|a", "|", `"x|y"|b`, "1||", "<a>|_:b", "1e400|a", "+|-", "NaN|"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, spec := range []string{"why * access(a < b)", "real * maxmin * poly", "access(a < b)", "fuzzy"} {
			k, err := Parse(spec, Env{})
			if err != nil {
				t.Fatal(err)
			}
			a, err := k.Lift(nil, 1, term.String(text))
			if err != nil {
				if !errors.Is(err, errs.ErrValue) {
					t.Fatalf("%s of %q: %v", spec, text, err)
				}
				continue
			}
			var b bag
			b.add(k.Spread(nil, a), 1)
			if got, err := b.collect(k); err != nil || !equalWords(got, a) {
				t.Fatalf("%s of %q: %v, then %v, %v", spec, text, a, got, err)
			}
		}
	})
}

func equalWords(a, b []uint64) bool { return len(a) == len(b) && compareWords(a, b) == 0 }
