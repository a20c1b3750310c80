package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// site is a store in memory that is served.
type site struct {
	testing.TB
	db      *triegs.DB
	handler *Handler
	url     string
	client  *http.Client
	httpd   *httptest.Server
}

// newSite serves a new store until the test ends. tune, unless it is nil, has a look at
// the server before it starts.
func newSite(t testing.TB, store triegs.Options, opts Options, tune func(*httptest.Server)) *site {
	t.Helper()
	db, err := triegs.Open("", &store)
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(db, opts)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(h)
	if tune != nil {
		tune(srv)
	}
	srv.Start()
	s := &site{TB: t, db: db, handler: h, url: srv.URL, client: srv.Client(), httpd: srv}
	t.Cleanup(func() {
		_ = h.Close() // always nil
		srv.Close()
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// do sends a request and returns the status, the header and the body.
func (s *site) do(method, path, body string, header ...string) (int, http.Header, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// get reads JSON into v and checks the status.
func (s *site) get(path string, status int, v any) {
	s.Helper()
	got, _, body := s.do(http.MethodGet, path, "")
	if got != status {
		s.Fatalf("GET %s: status %d, want %d: %s", path, got, status, body)
	}
	if err := json.Unmarshal([]byte(body), v); err != nil {
		s.Fatalf("GET %s: %v in %s", path, err, body)
	}
}

// register registers a query in the store.
func (s *site) register(name, text string) {
	s.Helper()
	if _, err := s.db.Register(s.Context(), name, text); err != nil {
		s.Fatal(err)
	}
}

// add inserts R(x, y) facts, as one epoch.
func (s *site) add(pairs ...string) triegs.Epoch {
	s.Helper()
	var b triegs.Batch
	for i := 0; i < len(pairs); i += 2 {
		b.Events = append(b.Events, triegs.Edge("R", triegs.String(pairs[i]), triegs.String(pairs[i+1])))
	}
	e, err := s.db.Append(s.Context(), b)
	if err != nil {
		s.Fatal(err)
	}
	return e
}

// eventually waits until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// codeOf is the code of the error in a body.
func codeOf(body string) string {
	var v struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil || v.Error.Message == "" {
		return "no error in " + body
	}
	return v.Error.Code
}

func TestReads(t *testing.T) {
	t.Parallel()
	s := newSite(t, triegs.Options{}, Options{}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	s.register("sums/of", "sums(x, sum(n), max(n)) :- N(x, n).")
	s.add("a", "b", "a", "b", "c", "<&>")
	if _, err := s.db.Append(t.Context(), triegs.Batch{Source: "s", Events: []triegs.Event{{Relation: "N", Tuple: []triegs.Term{triegs.IRI("http://e/a"), triegs.Int(5)}}}}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ path, want string }{
		{"/health", `{"status":"ok","epoch":4}`},
		{"/queries/q", `{"name":"q","text":"q(x, y) :- R(x, y).","columns":["x","y"],"aggregates":0,"semiring":"","distinct":false,"class":"*","epoch":1}`},
		{"/queries/q/count", `{"query":"q","epoch":4,"time":"*","offsets":{"s":1},"token":"*","distinct":2,"total":3}`},
		{"/queries/q/lookup?where.x=%22a%22&where.y=%22b%22", `{"query":"q","epoch":4,"time":"*","offsets":{"s":1},"token":"*","answer":{"query":"q","x":"a","y":"b","n":2}}`},
		{"/queries/sums%2Fof/lookup?where.x=%7B%22iri%22:%22http://e/a%22%7D", `{"query":"sums/of","epoch":4,"time":"*","offsets":{"s":1},"token":"*","answer":{"query":"sums/of","x":{"iri":"http://e/a"},"sum(n)":5,"max(n)":5}}`},
		{"/queries/sums%2Fof/answers", `{"query":"sums/of","epoch":4,"time":"*","offsets":{"s":1},"token":"*","columns":["x","sum(n)","max(n)"],"answers":[{"query":"sums/of","x":{"iri":"http://e/a"},"sum(n)":5,"max(n)":5}]}`},
	} {
		status, header, body := s.do(http.MethodGet, tc.path, "")
		if status != http.StatusOK || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v", tc.path, status, header)
		}
		if got := anonymous(t, body); got != anonymous(t, tc.want) {
			t.Errorf("%s: got %s, want %s", tc.path, got, tc.want)
		}
		if n, _, none := s.do(http.MethodHead, tc.path, ""); n != http.StatusOK || none != "" {
			t.Errorf("HEAD %s: %d %q", tc.path, n, none)
		}
	}
	var list struct{ Queries []description }
	if s.get("/queries", 200, &list); len(list.Queries) != 2 || list.Queries[1].Name != "sums/of" {
		t.Errorf("queries are %+v", list)
	}
	var stats struct {
		Metrics triegs.Metrics
		Offsets map[string]uint64
		Server  Usage
	}
	if s.get("/stats", 200, &stats); stats.Metrics.Queries != 2 || stats.Offsets["s"] != 1 || stats.Server != (Usage{}) {
		t.Errorf("stats are %+v", stats)
	}
}

// anonymous is JSON without what differs from run to run.
func anonymous(t *testing.T, text string) string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for _, k := range []string{"time", "token", "class"} {
		if _, ok := v[k]; ok {
			v[k] = "*"
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestMalformed sends what no route takes. Each is refused with its code, nothing
// panics, and the store is as it was.
func TestMalformed(t *testing.T) {
	t.Parallel()
	s := newSite(t, triegs.Options{}, Options{MaxBody: 1000, MaxStreams: 1}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	before := s.add("a", "b")
	token := func() string {
		snap, err := s.db.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		return snap.Token().String()
	}()
	other := token[:3] + strings.Repeat("B", 20) + token[23:]
	long := strings.Repeat("x", maxParams+1)
	for _, tc := range []struct {
		method, path, body string
		status             int
		code               string
		header             []string
	}{
		{"GET", "/", "", 404, "no_such_path", nil},
		{"GET", "/queries/", "", 404, "no_such_path", nil},
		{"GET", "/queries/q/answers/1", "", 404, "no_such_path", nil},
		{"BREW", "/nowhere", "", 404, "no_such_path", nil},
		{"PUT", "/queries/q", "q", 405, "method", nil},
		{"POST", "/health", "", 405, "method", nil},
		{"GET", "/append", "", 405, "method", nil},
		{"BREW", "/queries", "", 405, "method", nil},
		{"GET", "/health?x=1", "", 400, "bad_request", nil},
		{"GET", "/queries?x", "", 400, "bad_request", nil},
		{"GET", "/stats?%zz", "", 400, "bad_request", nil},
		{"GET", "/stats?a;b", "", 400, "bad_request", nil},
		{"GET", "/stats?" + long, "", 414, "too_large", nil},
		{"GET", "/queries/no", "", 404, "no_such_query", nil},
		{"GET", "/queries/%00%ff/count", "", 404, "no_such_query", nil},
		{"GET", "/queries/no/answers", "", 404, "no_such_query", nil},
		{"GET", "/queries/no/count", "", 404, "no_such_query", nil},
		{"GET", "/queries/no/lookup", "", 404, "no_such_query", nil},
		{"GET", "/queries/no/updates", "", 404, "no_such_query", nil},
		{"DELETE", "/queries/no", "", 404, "no_such_query", nil},
		{"GET", "/queries/q/answers?limit=0", "", 400, "bad_request", nil},
		{"GET", "/queries/q/answers?limit=-1", "", 400, "bad_request", nil},
		{"GET", "/queries/q/answers?limit=99999999999999999999", "", 400, "bad_request", nil},
		{"GET", "/queries/q/answers?limit=1&limit=2", "", 400, "bad_request", nil},
		{"GET", "/queries/q/answers?after=x", "", 400, "bad_request", nil},
		{"GET", "/queries/q/answers?after=x.y", "", 400, "bad_request", nil},
		{"GET", "/queries/q/answers?after=x.1", "", 410, "page_expired", nil},
		{"DELETE", "/queries/q/answers", "", 400, "bad_request", nil},
		{"DELETE", "/queries/q/answers?after=x.2", "", 410, "page_expired", nil},
		{"GET", "/queries/q/count?where.x=1", "", 400, "bad_request", nil},
		{"GET", "/queries/q/lookup", "", 400, "bad_request", nil},
		{"GET", "/queries/q/lookup?where.=1", "", 400, "bad_request", nil},
		{"GET", "/queries/q/lookup?where.x=a&where.y=1", "", 400, "bad_request", nil},
		{"GET", "/queries/q/lookup?where.x=1&where.y=1&where.z=1", "", 400, "bad_request", nil},
		{"GET", "/queries/q/lookup?where.x=1&where.y=1", "", 404, "no_answer", nil},
		{"GET", "/queries/q/updates?from=x", "", 400, "value", nil},
		{"GET", "/queries/q/updates?from=" + other, "", 410, "timeline", nil},
		{"GET", "/queries/q/updates", "", 400, "value", []string{"Last-Event-ID", "\x80"}},
		{"GET", "/queries/q/updates", "", 410, "timeline", []string{"Last-Event-ID", other}},
		{"GET", "/queries/q/updates?each=yes", "", 400, "bad_request", nil},
		{"GET", "/queries/q/updates?part=0", "", 400, "bad_request", nil},
		{"GET", "/queries/q/updates?where.x=", "", 400, "bad_request", nil},
		{"GET", "/queries/q/updates?where.z=1", "", 400, "value", nil},
		{"GET", "/queries/q/updates?as=" + strings.Repeat("n", 2000), "", 400, "value", nil},
		{"GET", "/queries/no/updates?as=n", "", 404, "no_such_query", nil},
		{"GET", "/queries/q/updates?as=n&from=" + other, "", 410, "timeline", nil},
		{"POST", "/subscribers/n", "", 400, "value", nil},
		{"POST", "/subscribers/n?token=" + token, "", 409, "not_attached", nil},
		{"DELETE", "/subscribers/n", "", 404, "no_such_subscriber", nil},
		{"POST", "/queries/q", "q(x) :- R(x, y).", 409, "query_exists", nil},
		{"POST", "/queries/p", "p(x) :- ", 400, "syntax", nil},
		{"POST", "/queries/p", "p(x) :- R(x).", 400, "arity", nil},
		{"POST", "/queries/p?window=soon", "p(x) :- R(x, y).", 400, "bad_request", nil},
		{"POST", "/queries/p?slide=1m", "p(x) :- R(x, y).", 400, "bad_request", nil},
		{"POST", "/queries/p", strings.Repeat("%", maxText+1), 413, "too_large", nil},
		{"POST", "/append", "{", 400, "syntax", nil},
		{"POST", "/append", "\x00\xff", 400, "syntax", nil},
		{"POST", "/append", `{"relation":"R","tuple":["a"]}`, 400, "arity", nil},
		{"POST", "/append", `{"op":"delete","relation":"R","tuple":["n","n"]}`, 409, "no_such_fact", nil},
		{"POST", "/append", strings.Repeat(" ", 1001), 413, "too_large", nil},
		{"POST", "/append", "\x1f\x8b\x08", 415, "encoding", nil},
		{"POST", "/append", "{}", 415, "encoding", []string{"Content-Encoding", "gzip"}},
		{"POST", "/append?source=s", "", 400, "bad_request", nil},
		{"POST", "/append?offset=1", "", 400, "bad_request", nil},
		{"POST", "/append?source=s&offset=-1", "", 400, "bad_request", nil},
		{"POST", "/append?batch=0", "", 400, "bad_request", nil},
		{"POST", "/append", `{"relation":"R","tuple":["a","b"]}`, 403, "cross_origin", []string{"Origin", "http://elsewhere.example"}},
		{"DELETE", "/queries/q", "", 403, "cross_origin", []string{"Sec-Fetch-Site", "cross-site"}},
	} {
		status, _, body := s.do(tc.method, tc.path, tc.body, tc.header...)
		if status != tc.status || codeOf(body) != tc.code {
			t.Errorf("%s %.80s: got %d %s, want %d %s (%s)", tc.method, tc.path, status, codeOf(body), tc.status, tc.code, body)
		}
	}
	if m := s.db.Metrics(); m.Epoch != before || m.Subscriptions != 0 || m.Snapshots != 0 {
		t.Errorf("afterwards: epoch %d, want %d; %d subscriptions, %d snapshots", m.Epoch, before, m.Subscriptions, m.Snapshots)
	}
	if u := s.handler.Usage(); u != (Usage{}) {
		t.Errorf("afterwards in use: %+v", u)
	}
	status, header, _ := s.do(http.MethodOptions, "/queries/q/answers", "")
	if got := header.Get("Allow"); status != http.StatusNoContent || got != "DELETE, GET, HEAD, OPTIONS" {
		t.Errorf("OPTIONS: %d %q", status, got)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	db, err := triegs.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, o := range []Options{{MaxStreams: -1}, {Buffer: -1}, {MaxPages: -1}, {MaxBody: -1}, {PageIdle: -1}, {PageAge: -1}, {WriteTimeout: -1}, {ReadTimeout: -1}, {Heartbeat: -1}} {
		if _, err := New(db, o); !errors.Is(err, triegs.ErrValue) {
			t.Errorf("%+v: got %v", o, err)
		}
	}
}

// TestAuthorize lets the hook refuse reads and writes, each with what it is told.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	var asked []Action
	s := newSite(t, triegs.Options{}, Options{Authorize: func(r *http.Request, a Action) error {
		asked = append(asked, a)
		switch {
		case r.Header.Get("Authorization") == "":
			return &Refusal{http.StatusUnauthorized, "who is there?"}
		case a.Query == "secret":
			return errors.New("a table of the rights at /etc says no")
		case a.Verb.Writes():
			return fmt.Errorf("for readers: %w", &Refusal{Message: "read only"})
		}
		return nil
	}}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	for _, tc := range []struct {
		method, path, key string
		status            int
		code, message     string
		action            Action
	}{
		{"GET", "/queries", "", 401, "unauthenticated", "who is there?", Action{Read, "", ""}},
		{"GET", "/queries/q/count", "k", 200, "", "", Action{Read, "q", ""}},
		{"GET", "/queries/secret/updates", "k", 403, "forbidden", "not allowed", Action{Follow, "secret", ""}},
		{"POST", "/append", "k", 403, "forbidden", "read only", Action{Append, "", ""}},
		{"POST", "/queries/p", "k", 403, "forbidden", "read only", Action{Register, "p", ""}},
		{"DELETE", "/queries/q", "k", 403, "forbidden", "read only", Action{Drop, "q", ""}},
		{"GET", "/queries/q/updates?as=me&as=you", "k", 400, "bad_request", "parameter \\\"as\\\" is there twice", Action{Follow, "q", "me"}},
		{"DELETE", "/subscribers/me", "k", 403, "forbidden", "read only", Action{Forget, "", "me"}},
		{"GET", "/stats", "k", 200, "", "", Action{Stats, "", ""}},
		{"GET", "/health", "k", 200, "", "", Action{Health, "", ""}},
	} {
		asked = nil
		var header []string
		if tc.key != "" {
			header = []string{"Authorization", tc.key}
		}
		text := ""
		if tc.action.Verb.Writes() {
			text = `{"relation":"R","tuple":["a","b"]}`
		}
		status, h, body := s.do(tc.method, tc.path, text, header...)
		if status != tc.status || len(asked) != 1 || asked[0] != tc.action {
			t.Errorf("%s %s: %d, asked %v", tc.method, tc.path, status, asked)
		}
		if tc.code != "" && (codeOf(body) != tc.code || !strings.Contains(body, `"message":"`+tc.message+`"`)) {
			t.Errorf("%s %s: %s, want %s %q", tc.method, tc.path, body, tc.code, tc.message)
		}
		if (status == 401) != (h.Get("WWW-Authenticate") != "") {
			t.Errorf("%s %s: WWW-Authenticate is %q", tc.method, tc.path, h.Get("WWW-Authenticate"))
		}
	}
	if m := s.db.Metrics(); m.Queries != 1 || m.Facts != 0 {
		t.Errorf("%d queries and %d facts after refused writes", m.Queries, m.Facts)
	}
}

// TestWrites appends with offsets, whole batches before a bad line, and registers and
// drops queries.
func TestWrites(t *testing.T) {
	t.Parallel()
	s := newSite(t, triegs.Options{}, Options{}, nil)
	line := func(x, y string) string { return fmt.Sprintf("{\"relation\":\"R\",\"tuple\":[%q,%q]}\n", x, y) }
	const commit = "{\"op\":\"commit\"}\n"
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/queries/q?distinct=1", "p(x) :- R(x, y).", 201, ""},
		{"POST", "/append", line("a", "b") + line("a", "c"), 200, `{"epoch":2,"epochs":1,"events":2}`},
		{"POST", "/append?batch=1", line("d", "b") + line("d", "c"), 200, `{"epoch":4,"epochs":2,"events":2}`},
		{"POST", "/append", line("e", "b") + commit + line("e", "c") + commit, 200, `{"epoch":6,"epochs":2,"events":2}`},
		{"POST", "/append", "", 200, `{"epoch":0,"epochs":0,"events":0}`},
		{"POST", "/append?source=s&offset=0", line("f", "b") + line("f", "c"), 200, `{"epoch":7,"epochs":1,"events":2,"next":2}`},
		{"POST", "/append?source=s&offset=1", line("f", "c") + line("g", "c"), 200, `{"epoch":8,"epochs":1,"events":1,"next":3}`},
		{"POST", "/append?source=s&offset=0", line("f", "b") + line("f", "c") + line("g", "c"), 200, `{"epoch":0,"epochs":0,"events":0,"next":3}`},
		{"POST", "/append?source=s&offset=3", line("h", "c") + commit + "{\n", 400,
			`{"error":{"code":"syntax","message":"syntax error: column 2: want a key","line":3},"applied":{"epoch":9,"epochs":1,"events":1,"next":4}}`},
		{"POST", "/append", line("i", "c") + `{"op":"delete","relation":"R","tuple":["z","z"]}`, 409, ""},
		{"POST", "/append?ignore_missing=1", line("i", "c") + `{"op":"delete","relation":"R","tuple":["z","z"]}`, 200, `{"epoch":10,"epochs":1,"events":2}`},
	} {
		status, _, body := s.do(tc.method, tc.path, tc.body)
		if status != tc.status || tc.want != "" && body != tc.want+"\n" {
			t.Errorf("%s %s: %d %s, want %d %s", tc.method, tc.path, status, body, tc.status, tc.want)
		}
	}
	// A watermark alone does not move the time of a store that goes by arrival.
	if status, _, body := s.do("POST", "/append", `{"op":"commit","watermark":5}`); status != 200 || s.db.Metrics().Epoch != 10 {
		t.Errorf("a watermark alone: %d %s", status, body)
	}
	var count struct{ Distinct, Total int64 }
	if s.get("/queries/q/count", 200, &count); count.Distinct != 7 {
		t.Errorf("counted %+v, want 7: a d e f g h i", count)
	}
	if status, _, body := s.do("POST", "/append", line("a", "b")+"{\"op\":\"delete\",\"relation\":\"R\",\"tuple\":[\"z\",\"z\"]}"); !strings.Contains(body, `"line":2`) {
		t.Errorf("a fault of the store: %d %s", status, body)
	}
	if status, _, body := s.do("DELETE", "/queries/q", ""); status != 204 || body != "" {
		t.Errorf("drop: %d %s", status, body)
	}
	if status, _, _ := s.do("GET", "/queries/q", ""); status != 404 {
		t.Errorf("a dropped query: %d", status)
	}
}

// TestOverflow tells of answers that do not fit, and of the others.
func TestOverflow(t *testing.T) {
	t.Parallel()
	s := newSite(t, triegs.Options{}, Options{}, nil)
	s.register("q", "q(x) :- A(x), B(x), C(x), D(x), E(x), F(x).")
	var b triegs.Batch
	for _, relation := range []string{"A", "B", "C", "D", "E", "F"} {
		for range 2048 {
			b.Events = append(b.Events, triegs.Event{Relation: relation, Tuple: []triegs.Term{triegs.String("big")}})
		}
		b.Events = append(b.Events, triegs.Event{Relation: relation, Tuple: []triegs.Term{triegs.String("small")}})
	}
	if _, err := s.db.Append(t.Context(), b); err != nil {
		t.Skipf("the epoch is refused: %v", err)
	}
	_, _, body := s.do("GET", "/queries/q/answers", "")
	for _, want := range []string{`{"query":"q","x":"big","n":0,"error":"overflow"}`, `{"query":"q","x":"small","n":1}`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if status, _, body := s.do("GET", "/queries/q/count", ""); status != 422 || codeOf(body) != "overflow" {
		t.Errorf("count: %d %s", status, body)
	}
	// The stream goes on behind what does not fit.
	e := s.follow("/queries/q/updates?snapshot=1", "")
	defer e.close()
	whole := e.next()
	for _, want := range []string{`"x":"big","old":0,"new":0,"error":"overflow"}`, `"x":"small","old":0,"new":1}`} {
		if !strings.Contains(whole.data, want) || whole.kind != "update" {
			t.Errorf("no %s in %+v", want, whole)
		}
	}
}

// TestClose ends streams and pages, with their goroutines, refuses what comes later,
// and leaves nothing open in the store.
func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	s := newSite(t, triegs.Options{}, Options{}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	for i := range 20 {
		s.add("a", fmt.Sprint(i))
	}
	_, _, page := s.do("GET", "/queries/q/answers?limit=5", "")
	var p struct{ Next string }
	if err := json.Unmarshal([]byte(page), &p); err != nil || p.Next == "" {
		t.Fatalf("%v in %s", err, page)
	}
	events := s.follow("/queries/q/updates?snapshot=1", "")
	if e := events.next(); e.kind != "update" {
		t.Fatalf("first %+v", e)
	}
	if u := s.handler.Usage(); u != (Usage{Streams: 1, Pages: 1}) {
		t.Errorf("in use: %+v", u)
	}
	if err := s.handler.Close(); err != nil {
		t.Error(err)
	}
	if e := events.next(); e.kind != "end" || codeOf(e.data) != "closed" || e.id != "" {
		t.Errorf("the stream ends with %+v", e)
	}
	events.close()
	for _, path := range []string{"/queries/q/answers?after=" + p.Next, "/health"} {
		if status, h, body := s.do("GET", path, ""); status != 503 || codeOf(body) != "closed" || h.Get("Retry-After") == "" {
			t.Errorf("%s after Close: %d %s", path, status, body)
		}
	}
	if u, m := s.handler.Usage(), s.db.Metrics(); u != (Usage{}) || m.Snapshots != 0 || m.Subscriptions != 0 {
		t.Errorf("left behind: %+v, %d snapshots, %d subscriptions", u, m.Snapshots, m.Subscriptions)
	}
	if err := s.db.Close(); err != nil {
		t.Error(err)
	}
	if err := s.handler.Close(); err != nil {
		t.Error(err)
	}
	s.httpd.Close()
	s.client.CloseIdleConnections()
	eventually(t, "goroutines back", func() bool { return runtime.NumGoroutine() <= before })
}

// TestStoreClosed closes the store under its handler: requests are told, streams end.
func TestStoreClosed(t *testing.T) {
	t.Parallel()
	db, err := triegs.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	defer h.Close()
	s := &site{TB: t, db: db, handler: h, url: srv.URL, client: srv.Client()}
	s.register("q", "q(x, y) :- R(x, y).")
	events := s.follow("/queries/q/updates", "")
	defer events.close()
	if e := events.next(); e.kind != "progress" {
		t.Fatalf("first %+v", e)
	}
	if err := db.Close(); !errors.Is(err, triegs.ErrLeaked) {
		t.Errorf("close: %v", err)
	}
	if e := events.next(); e.kind != "end" || codeOf(e.data) != "closed" {
		t.Errorf("the stream ends with %+v", e)
	}
	for _, path := range []string{"/health", "/queries/q", "/queries/q/answers", "/queries/q/count", "/queries/q/updates", "/stats"} {
		if status, _, body := s.do("GET", path, ""); status != 503 || codeOf(body) != "closed" {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _, body := s.do("POST", "/append", `{"relation":"R","tuple":["a","b"]}`); status != 503 || codeOf(body) != "closed" {
		t.Errorf("append: %d %s", status, body)
	}
}

// TestRecorder serves to a writer that knows neither deadlines nor flushes.
func TestRecorder(t *testing.T) {
	t.Parallel()
	s := newSite(t, triegs.Options{}, Options{}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	s.add("a", "b")
	var out bytes.Buffer
	w := plainWriter{header: http.Header{}, to: &out}
	s.handler.ServeHTTP(&w, httptest.NewRequest("GET", "/queries/q/answers", nil))
	if w.status != 200 || !strings.Contains(out.String(), `"x":"a"`) {
		t.Errorf("%d %s", w.status, out.String())
	}
}

type plainWriter struct {
	header http.Header
	status int
	to     io.Writer
}

func (w *plainWriter) Header() http.Header         { return w.header }
func (w *plainWriter) WriteHeader(status int)      { w.status = status }
func (w *plainWriter) Write(p []byte) (int, error) { return w.to.Write(p) }
