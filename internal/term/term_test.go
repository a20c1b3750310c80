package term

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs/internal/errs"
)

func TestCanonicalTerms(t *testing.T) {
	dt := func(name string) string { return XSD + name }
	for _, c := range []struct {
		name string
		got  Term
		want Term
	}{
		{"xsd:string", Typed("x", dt("string")), String("x")},
		{"integer", Typed("42", dt("integer")), Int(42)},
		{"negative integer", Typed("-42", dt("integer")), Int(-42)},
		{"smallest integer", Typed("-9223372036854775808", dt("integer")), Int(math.MinInt64)},
		{"double", Typed("1.5E0", dt("double")), Float(1.5)},
		{"double with exponent", Typed("-1.25E-7", dt("double")), Float(-1.25e-7)},
		{"whole double", Typed("1.0E2", dt("double")), Float(100)},
		{"negative zero", Typed("-0.0E0", dt("double")), Float(math.Copysign(0, -1))},
		{"infinity", Typed("INF", dt("double")), Float(math.Inf(1))},
		{"minus infinity", Typed("-INF", dt("double")), Float(math.Inf(-1))},
		{"NaN", Typed("NaN", dt("double")), Float(math.NaN())},
		{"NaN of other bits", Float(math.Float64frombits(0x7FF8000000000123)), Float(math.NaN())},
		{"true", Typed("true", dt("boolean")), Bool(true)},
		{"false", Typed("false", dt("boolean")), Bool(false)},
		{"dateTime", Typed("1969-12-31T23:59:59.5Z", dt("dateTime")), Time(time.Unix(0, -500_000_000))},
		{"first dateTime", Typed("1677-09-21T00:12:43.145224192Z", dt("dateTime")), Time(time.Unix(0, math.MinInt64))},
		{"bytes", Typed("AP8=", dt("base64Binary")), Bytes([]byte{0, 255})},
		{"no bytes", Typed("", dt("base64Binary")), Bytes(nil)},
		{"language in upper case", LangString("chat", "EN-gb"), LangString("chat", "en-GB")},
		{"location of a time", Time(time.Unix(7, 0).In(time.FixedZone("x", 3600))), Time(time.Unix(7, 0))},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v (%v), want %v (%v)", c.name, c.got, c.got.Kind(), c.want, c.want.Kind())
		}
	}
}

func TestOtherLexicalFormsStayAsWritten(t *testing.T) {
	for _, c := range []struct{ lexical, datatype string }{
		{"+1", "integer"}, {"01", "integer"}, {"-0", "integer"}, {"9223372036854775808", "integer"},
		{"", "integer"}, {"1", "int"}, {"1.0", "decimal"}, {"1.5", "double"}, {"1.5e0", "double"},
		{"1E0", "double"}, {"15.0E-1", "double"}, {"+INF", "double"}, {"inf", "double"}, {"0x1.0E0", "double"},
		{"1", "boolean"}, {"True", "boolean"}, {"2020-01-01T00:00:00", "dateTime"},
		{"2020-01-01T00:00:00.0Z", "dateTime"}, {"2020-01-01T00:00:00+00:00", "dateTime"},
		{"2020-02-30T00:00:00Z", "dateTime"}, {"2020-01-01T24:00:00Z", "dateTime"},
		{"2020-01-01T00:00:00.1234567891Z", "dateTime"}, {"9999-01-01T00:00:00Z", "dateTime"},
		{"AP8", "base64Binary"}, {"AP8=\n", "base64Binary"}, {"AP9=", "base64Binary"}, {"", "date"},
	} {
		got := Typed(c.lexical, XSD+c.datatype)
		if got.Kind() != KindTyped || got.Lexical() != c.lexical || got.Datatype() != XSD+c.datatype {
			t.Errorf("%q^^%s: got %v, want it kept as written", c.lexical, c.datatype, got)
		}
	}
}

func TestTimeBeyondNanoseconds(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{time.Date(9999, 12, 31, 23, 59, 59, 120, time.UTC), "9999-12-31T23:59:59.00000012Z"},
		{time.Date(12345, 1, 2, 3, 4, 5, 0, time.UTC), "12345-01-02T03:04:05Z"},
		{time.Date(-4, 1, 2, 3, 4, 5, 0, time.UTC), "-0004-01-02T03:04:05Z"},
		{time.Date(0, 1, 2, 3, 4, 5, 0, time.UTC), "0000-01-02T03:04:05Z"},
		{time.Time{}, "0001-01-01T00:00:00Z"},
	} {
		got := Time(c.at)
		if got != Typed(c.want, XSDDateTime) || got.Kind() != KindTyped {
			t.Errorf("Time(%v) = %v, want %s", c.at, got, c.want)
		}
		if !Less(got, Time(time.Unix(1, 0))) == (c.at.Year() < 1970) {
			t.Errorf("%v does not compare by instant", got)
		}
	}
}

func TestAccessors(t *testing.T) {
	if v, ok := Int(-3).AsInt(); v != -3 || !ok {
		t.Errorf("AsInt: %d, %v", v, ok)
	}
	if v, ok := Float(0.5).AsFloat(); v != 0.5 || !ok {
		t.Errorf("AsFloat: %v, %v", v, ok)
	}
	if v, ok := Bool(true).AsBool(); !v || !ok {
		t.Errorf("AsBool: %v, %v", v, ok)
	}
	at := time.Date(1960, 2, 3, 4, 5, 6, 7, time.UTC)
	if v, ok := Time(at).AsTime(); !v.Equal(at) || !ok {
		t.Errorf("AsTime: %v, %v", v, ok)
	}
	if v, ok := Bytes([]byte{1, 2}).AsBytes(); string(v) != "\x01\x02" || !ok {
		t.Errorf("AsBytes: %v, %v", v, ok)
	}
	s := String("7")
	_, ok1 := s.AsInt()
	_, ok2 := s.AsFloat()
	_, ok3 := s.AsBool()
	_, ok4 := s.AsTime()
	_, ok5 := s.AsBytes()
	if ok1 || ok2 || ok3 || ok4 || ok5 {
		t.Error("a string has a native value")
	}
	if l := LangString("x", "EN"); l.Lang() != "en" || l.Datatype() != RDFLangText || l.Lexical() != "x" {
		t.Errorf("language string: %q %q %q", l.Lang(), l.Datatype(), l.Lexical())
	}
	if !(Term{}).IsZero() || String("").IsZero() || IRI("").IsZero() {
		t.Error("only the zero term is absent")
	}
}

func TestValidate(t *testing.T) {
	for name, bad := range map[string]Term{
		"absent": {}, "string": String("a\xff"), "surrogate": String("\xed\xa0\x80"),
		"iri space": IRI("a b"), "iri utf8": IRI("\xff"), "iri control": IRI("a\x00"), "iri bracket": IRI("a>"),
		"datatype": Typed("x", "a b"), "no datatype": Typed("x", ""),
		"no language": LangString("x", ""), "language": LangString("x", "1"), "language end": LangString("x", "en-"),
		"no label": Blank(""), "label colon": Blank(":a"), "label end": Blank("a."), "label space": Blank("a b"),
		"label utf8": Blank("a\xff"), "label replacement": Blank("\xef"),
	} {
		if err := bad.Validate(); !errors.Is(err, errs.ErrValue) {
			t.Errorf("%s: got %v, want ErrValue", name, err)
		}
	}
	for _, good := range []Term{
		String(""), String("\x00\x1f\x7f\n\ufffd"), IRI(""), IRI("a"), IRI("http://é/#?"), Typed("", "d"),
		LangString("", "en-1a"), Blank("0"), Blank("a.b-c"), Blank("é"), Bytes([]byte{255}), Int(0),
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
}

// randomTerm draws a valid term, with many hard characters.
func randomTerm(r *rand.Rand) Term {
	text := func() string {
		const hard = "\x00\t\n\r\x1f\"\\'<>{} aé\u0301\u2028\ufffd\uffff\U0001F61F\u007f%:_-.0"
		runes := []rune(hard)
		var sb strings.Builder
		for range r.IntN(6) {
			sb.WriteRune(runes[r.IntN(len(runes))])
		}
		return sb.String()
	}
	iri := func() string {
		return strings.Map(func(c rune) rune {
			if c < 0x80 && forbiddenInIRI(byte(c)) {
				return 'x'
			}
			return c
		}, text())
	}
	types := []string{"integer", "double", "boolean", "dateTime", "base64Binary", "string", "int"}
	forms := []string{"1", "-7", "1.0E0", "true", "AP8=", "2020-01-01T00:00:00Z", "x", "+1", "INF", "NaN"}
	switch r.IntN(11) {
	case 0:
		return IRI(iri())
	case 1:
		return String(text())
	case 2:
		return LangString(text(), []string{"en", "EN-gb", "x-1"}[r.IntN(3)])
	case 3:
		return Typed(text(), "d"+iri())
	case 4:
		return Int(int64(r.Uint64()) >> r.IntN(64))
	case 5:
		return Float(math.Float64frombits(r.Uint64()))
	case 6:
		return Bool(r.IntN(2) == 0)
	case 7:
		return Time(time.Unix(int64(r.Uint64())>>(20+r.IntN(44)), r.Int64N(1e9)))
	case 8:
		return Bytes([]byte(text()))
	case 9:
		return Blank([]string{"a", "0", "a.b", "é"}[r.IntN(4)])
	}
	return Typed(forms[r.IntN(len(forms))], XSD+types[r.IntN(len(types))])
}

func TestRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		a := randomTerm(r)
		if err := a.Validate(); err != nil {
			t.Fatalf("%#v: %v", a, err)
		}
		if b, err := Parse(a.String()); err != nil || b != a {
			t.Fatalf("Parse(%s) = %#v, %v, want %#v", a, b, err, a)
		}
		enc := AppendBinary(nil, a)
		if b, n, err := DecodeBinary(append(enc, 0xAA)); err != nil || b != a || n != len(enc) {
			t.Fatalf("DecodeBinary(% x) = %v, %d, %v, want %v", enc, b, n, err, a)
		}
		if lit := a.Datatype(); lit != "" && lit != RDFLangText && Typed(a.Lexical(), lit) != a {
			t.Fatalf("Typed(%q, %q) is not %v", a.Lexical(), lit, a)
		}
		c := randomTerm(r)
		if (c == a) != (string(AppendBinary(nil, c)) == string(enc)) || (c == a) != (c.String() == a.String()) {
			t.Fatalf("%v and %v: equality differs between forms", a, c)
		}
	}
}
