package term

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs/internal/errs"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Term
	}{
		{`<http://a/\u00e9\U0001F61F>`, IRI("http://a/é\U0001F61F")},
		{`<>`, IRI("")},
		{`<\u0080>`, IRI("\u0080")},
		{`<a>`, IRI("a")},
		{`_:b0.x-1`, Blank("b0.x-1")},
		{`_:é`, Blank("é")},
		{"_:a·\u0300\u203f", Blank("a·\u0300\u203f")},
		{"_:\u200c\u2070\u2c00\u3001\uf900\ufdf0\U00010000", Blank("\u200c\u2070\u2c00\u3001\uf900\ufdf0\U00010000")},
		{`""`, String("")},
		{`"a'b\t\b\n\r\f\"\'\\"`, String("a'b\t\b\n\r\f\"'\\")},
		{"\"tab\tnul\x00del\x7f\"", String("tab\tnul\x00del\x7f")},
		{`"x"@EN-Gb-1`, LangString("x", "en-gb-1")},
		{`"x"^^<d>`, Typed("x", "d")},
		{`"x"^^<http://www.w3.org/2001/XMLSchema#string>`, String("x")},
		{`"7"^^<http://www.w3.org/2001/XMLSchema#integer>`, Int(7)},
		{`"7"^^<http://www.w3.org/2001/XMLSchema#int\u0065ger>`, Int(7)},
	} {
		if got, err := Parse(c.text); err != nil || got != c.want {
			t.Errorf("%s: got %v, %v, want %v", c.text, got, err, c.want)
		}
	}
}

// TestEscapes is TERM-04: one character is one term however it is written.
func TestEscapes(t *testing.T) {
	parse := func(s string) Term {
		v, err := Parse(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
		}
		return v
	}
	raw, short, long := parse(`"é"`), parse(`"\u00E9"`), parse(`"\U000000E9"`)
	if raw != short || raw != long {
		t.Errorf("é: %v %v %v", raw, short, long)
	}
	if parse("\"e\u0301\"") == raw {
		t.Error("the decomposed é is the composed one")
	}
	if parse(`"😟"`) != parse(`"\U0001F61F"`) {
		t.Error("the emoji differs from its escape")
	}
}

// TestStrict is TERM-05 and more: what N-Triples forbids is refused, with the
// column in runes.
func TestStrict(t *testing.T) {
	for _, c := range []struct {
		text   string
		column int
	}{
		{"", 1}, {"@base <http://a/> .", 1}, {"@prefix : <http://a/> .", 1}, {"1", 1}, {"true", 1}, {"a:b", 1},
		{"_::a", 3}, {"_:", 3}, {"_:×", 3}, {"_:÷", 3}, {"_:ª", 3}, {"_:·a", 3}, {"_:\u037e", 3}, {"_:\u2000", 3}, {"_:a.", 4}, {"_:-a", 3}, {"_:a:b", 4},
		{`"x"@1`, 5}, {`"x"@`, 5}, {`"x"@en-`, 7}, {`"x"@en_us`, 7}, {`"x" @en`, 4},
		{`"x"^<d>`, 4}, {`"x"^^d`, 6}, {`"x"^^"d"`, 6}, {`"x"^^<>`, 6}, {`"x"^^<a b>`, 8}, {`"x"^^ <d>`, 6},
		{`"x`, 1}, {`"x'`, 1}, {`'x'`, 1}, {`"""x"""`, 3}, {"\"a\nb\"", 3}, {"\"a\rb\"", 3},
		{`"é\x"`, 3}, {`"\u12G4"`, 2}, {`"\u12"`, 2}, {`"\u12`, 2}, {`"\é"`, 2}, {`"\U0011FFFF"`, 2}, {`"\UFFFFFFFF"`, 2}, {`"\uD800"`, 2}, {`"\`, 2},
		{"\"é\xff\"", 3}, {"<é\xff>", 3}, {"_:é\xff", 4},
		{"<a", 1}, {"<a b>", 3}, {`<a\u0020b>`, 3}, {`<a\nb>`, 3}, {`<a\'b>`, 3}, {"<a{b>", 3}, {"<a\x00>", 3}, {`<\u003E>`, 2},
		{"<a> ", 4}, {" <a>", 1}, {`"x"x`, 4},
	} {
		got, err := Parse(c.text)
		fault, ok := errors.AsType[*SyntaxError](err)
		if !ok || !errors.Is(err, errs.ErrSyntax) {
			t.Errorf("%q: got %v, %v, want a syntax error", c.text, got, err)
			continue
		}
		if fault.Column != c.column || len([]rune(c.text[:fault.Offset])) != c.column-1 || !strings.HasPrefix(err.Error(), "column ") {
			t.Errorf("%q: got %v at byte %d, want column %d", c.text, err, fault.Offset, c.column)
		}
	}
}

func TestParsePrefix(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"_:a. ", 3}, {"_:a.b.", 5}, {"<a><b>", 3}, {`"x"@en.`, 6}, {`"x"@en-.`, 6}, {`"x"^^<d>.`, 8}, {`"x".`, 3}, {"_:é.", 4},
	} {
		if _, n, err := ParsePrefix(c.text); err != nil || n != c.want {
			t.Errorf("%s: got %d, %v, want %d", c.text, n, err, c.want)
		}
	}
}

func TestString(t *testing.T) {
	for _, c := range []struct {
		term Term
		want string
	}{
		{Term{}, ""},
		{String("a\"b\\c\n\r\t\b\f'\x00\x1f\x7fé\u2028"), `"a\"b\\c\n\r\t\b\f'\u0000\u001F\u007Fé` + "\u2028" + `"`},
		{IRI("http://é"), "<http://é>"},
		{LangString("x", "EN"), `"x"@en`},
		{Int(-7), `"-7"^^<http://www.w3.org/2001/XMLSchema#integer>`},
		{Float(1e21), `"1.0E21"^^<http://www.w3.org/2001/XMLSchema#double>`},
		{Float(-12.5e-9), `"-1.25E-8"^^<http://www.w3.org/2001/XMLSchema#double>`},
		{Time(time.Unix(0, 1_500_000_000)), `"1970-01-01T00:00:01.5Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>`},
		{Bytes([]byte("ab")), `"YWI="^^<http://www.w3.org/2001/XMLSchema#base64Binary>`},
		{String("\xff"), "\"\ufffd\""},
	} {
		if got := c.term.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// TestStoredForm pins the bytes, which are a stored format.
func TestStoredForm(t *testing.T) {
	for _, c := range []struct {
		term Term
		want string
	}{
		{Term{}, "00"},
		{IRI("a"), "010161"},
		{String(""), "0200"},
		{LangString("a", "en"), "0302656e0161"},
		{Typed("a", "d"), "0401640161"},
		{Int(0), "0500"}, {Int(-1), "0501"}, {Int(64), "058001"},
		{Float(1), "063ff0000000000000"},
		{Bool(true), "0701"},
		{Time(time.Unix(0, 256)), "080000000000000100"},
		{Bytes([]byte{255}), "0901ff"},
		{Blank("b"), "0a0162"},
	} {
		if got := hex.EncodeToString(AppendBinary(nil, c.term)); got != c.want {
			t.Errorf("%v: got %s, want %s", c.term, got, c.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, s := range map[string]string{
		"nothing": "", "unknown kind": "0b", "high kind": "ff", "cut length": "02", "cut text": "0202" + "61",
		"huge length": "02ffffffffffffffffff01", "endless varint": "02ffffffffffffffffffffff", "padded length": "028000",
		"padded int": "058000", "cut int": "0580", "cut float": "063ff0", "other NaN": "067ff8000000000123",
		"truth value": "0702", "cut bool": "07", "cut time": "0800", "upper case tag": "0302454e0161",
		"native integer": "04" + hex.EncodeToString(append([]byte{byte(len(XSDInteger))}, XSDInteger+"\x011"...)),
		"native string":  "04" + hex.EncodeToString(append([]byte{byte(len(XSDString))}, XSDString+"\x011"...)),
	} {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		if v, n, err := DecodeBinary(b); !errors.Is(err, errs.ErrCorrupt) || n != 0 || !v.IsZero() {
			t.Errorf("%s: got %v, %d, %v, want ErrCorrupt", name, v, n, err)
		}
	}
}

func TestDecodeCopies(t *testing.T) {
	b := AppendBinary(nil, String("abc"))
	v, _, err := DecodeBinary(b)
	clear(b)
	if err != nil || v != String("abc") {
		t.Errorf("got %v, %v after the bytes were cleared", v, err)
	}
}

func FuzzTerm(f *testing.F) {
	for _, s := range []string{
		`<http://a/\u00e9>`, `_:b.0`, `"a\n\"\U0001F61F"@en-GB`, `"1.0E0"^^<http://www.w3.org/2001/XMLSchema#double>`,
		`"1969-12-31T23:59:59.5Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>`, `"x"^^<d>`, `"\uD800"`, "\"\xff", `_::a`,
		`"AP8="^^<http://www.w3.org/2001/XMLSchema#base64Binary>`, `"-0"^^<http://www.w3.org/2001/XMLSchema#integer>`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// Whatever the text, it makes terms that print and compare without harm.
		for _, v := range []Term{String(text), IRI(text), Blank(text), LangString(text, text), Typed(text, text),
			Typed(text, XSDDateTime), Typed(text, XSD+"date"), Typed(text, XSDDouble), Typed(text, XSDDecimal), Bytes([]byte(text))} {
			back, err := Parse(v.String())
			if valid := v.Validate() == nil; valid && (err != nil || back != v) {
				t.Fatalf("%#v is valid, but %s gives %v, %v", v, v, back, err)
			}
			if d, n, err := DecodeBinary(AppendBinary(nil, v)); err != nil || d != v || n != len(AppendBinary(nil, v)) {
				t.Fatalf("%#v: stored form gives %v, %d, %v", v, d, n, err)
			}
			CompareValues(v, Typed("1.5", XSDDecimal))
			CompareValues(v, Time(time.Unix(0, 0)))
		}
		v, err := Parse(text)
		if err != nil {
			if !errors.Is(err, errs.ErrSyntax) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if err := v.Validate(); err != nil {
			t.Fatalf("%q was parsed but %v", text, err)
		}
		if back, err := Parse(v.String()); err != nil || back != v {
			t.Fatalf("%q: %s gives %v, %v", text, v, back, err)
		}
	})
}

func FuzzDecodeTerm(f *testing.F) {
	for _, v := range []Term{{}, IRI("a"), String("é"), LangString("a", "en"), Typed("a", "d"), Int(-70000), Float(1),
		Bool(true), Time(time.Unix(1, 2)), Bytes([]byte{0, 255}), Blank("b")} {
		f.Add(AppendBinary(nil, v))
	}
	f.Add([]byte{2, 0x80, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, n, err := DecodeBinary(b)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if again := AppendBinary(nil, v); n < 1 || n > len(b) || !bytes.Equal(again, b[:n]) {
			t.Fatalf("% x: %#v is written % x", b, v, again)
		}
	})
}
