package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"github.com/triegs/triegs"
)

// subscriber is what the store knows of a name; the zero value if nothing.
func (s *site) subscriber(name string) triegs.SubscriberInfo {
	for _, n := range s.db.Subscribers() {
		if n.Name == name {
			return n
		}
	}
	return triegs.SubscriberInfo{}
}

// told reads the next event, which must be of one of the kinds, and returns it.
func (e *events) of(kinds ...string) event {
	e.Helper()
	got := e.next()
	if !slices.Contains(kinds, got.kind) {
		e.Fatalf("got %+v, want %v", got, kinds)
	}
	return got
}

// TestName goes on for a name: by what the client has acknowledged while its stream was
// open, by the id that it comes again with, and over a restart.
func TestName(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	open := func() (*site, func()) {
		db, err := triegs.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := New(db, Options{MaxNames: 1})
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewServer(h)
		return &site{TB: t, db: db, handler: h, url: srv.URL, client: srv.Client(), httpd: srv}, func() {
			_ = h.Close() // always nil
			srv.Close()
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	s, stop := open()
	s.register("q", "q(x, y) :- R(x, y).")
	s.add("a", "1")
	const path = "/queries/q/updates?snapshot=1&as=me"
	e := s.follow(path, "")
	whole := e.of("update")
	if u := whole.update(t); !u.Whole || u.Epoch != 2 {
		t.Fatalf("it begins with %s", u)
	}
	if status, _, body := s.do("POST", "/subscribers/me?token="+whole.id, ""); status != 204 {
		t.Fatalf("acknowledging: %d %s", status, body)
	}
	if status, h, body := s.do("GET", "/queries/q/updates?as=you", ""); status != 503 || codeOf(body) != "busy" || h.Get("Retry-After") == "" {
		t.Errorf("one name more than may be: %d %s", status, body)
	}
	s.add("a", "2")
	s.add("a", "3")
	s.add("a", "4")
	var ids []string
	for range 3 {
		ids = append(ids, e.of("update").id)
	}
	if got := s.subscriber("me"); got.Epoch != 2 || !got.Attached || got.Lag != 3 {
		t.Errorf("acknowledged the whole answer: %+v", got)
	}
	// It comes again with the second of three, while its first stream still is there.
	again := s.follow(path, ids[1])
	if got := again.of("progress"); got.id != ids[1] {
		t.Errorf("it goes on at %+v, want %s", got, ids[1])
	}
	if got := again.of("update"); got.id != ids[2] || got.update(t).String() != "5<4 a,4:0>1" {
		t.Errorf("it goes on with %+v", got)
	}
	if got := e.of("end"); codeOf(got.data) != "name_taken" {
		t.Errorf("the stream before ends with %+v", got)
	}
	e.close()
	if got := s.subscriber("me"); got.Epoch != 4 {
		t.Errorf("acknowledged by coming again: %+v", got)
	}
	if status, _, body := s.do("GET", path, "", "Last-Event-ID", ids[0]); status != 409 || codeOf(body) != "acknowledged" {
		t.Errorf("behind what was acknowledged: %d %s", status, body)
	}
	again.close()
	stop()
	s, stop = open()
	defer stop()
	s.add("a", "5")
	for _, id := range []string{"", ids[2]} { // by the store, or by what the client knows
		e := s.follow(path, id)
		first := e.of("progress")
		want, next := ids[1], "5<4 a,4:0>1"
		if id != "" {
			want, next = id, "6<5 a,5:0>1"
		}
		if got := e.of("update"); first.id != want || got.update(t).String() != next {
			t.Errorf("after a restart with %q: %+v, %s", id, first, got.update(t))
		}
		e.close()
		eventually(t, "it is gone", func() bool { return !s.subscriber("me").Attached })
	}
	var list struct{ Subscribers []triegs.SubscriberInfo }
	if s.get("/subscribers", 200, &list); len(list.Subscribers) != 1 || list.Subscribers[0].Epoch != 5 {
		t.Errorf("subscribers are %+v", list)
	}
	if status, _, body := s.do("DELETE", "/subscribers/me", ""); status != 204 || len(s.db.Subscribers()) != 0 {
		t.Errorf("forgetting: %d %s", status, body)
	}
}

// TestNameUnacknowledged comes again with the id of a whole answer that was never
// acknowledged: it goes on there where that is kept, else with the whole answer.
func TestNameUnacknowledged(t *testing.T) {
	t.Parallel()
	for _, retained := range []int{0, 10} {
		s := newSite(t, triegs.Options{RetainedEpochs: retained}, Options{}, nil)
		s.register("q", "q(x, y) :- R(x, y).")
		s.add("a", "1")
		const path = "/queries/q/updates?snapshot=1&as=me"
		e := s.follow(path, "")
		id := e.of("update").id
		e.close()
		eventually(t, "it is gone", func() bool { return !s.subscriber("me").Attached })
		s.add("a", "2")
		e = s.follow(path, id)
		want := "3<3 whole a,1:0>1 a,2:0>1"
		if retained > 0 {
			if got := e.of("progress"); got.id != id {
				t.Errorf("it begins at %+v", got)
			}
			want = "3<2 a,2:0>1"
		}
		if got := e.of("update").update(t).String(); got != want {
			t.Errorf("with %d epochs: got %s, want %s", retained, got, want)
		}
		e.close()
		if retained > 0 {
			continue
		}
		if status, _, body := s.do("GET", "/queries/q/updates?as=me", "", "Last-Event-ID", id); status != 410 || codeOf(body) != "too_old" {
			t.Errorf("who does not take the whole answer: %d %s", status, body)
		}
	}
}

// TestNameReadOnly refuses a name where nothing can be written.
func TestNameReadOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	db, err := triegs.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Register(t.Context(), "q", "q(x, y) :- R(x, y)."); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = triegs.Open(dir, &triegs.Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	h, err := New(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for path, method := range map[string]string{"/queries/q/updates?as=me": "GET", "/append": "POST", "/queries/q": "DELETE"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, path, nil)
		if path == "/append" {
			r = httptest.NewRequest(method, path, jsonl(t, "R", "a", "b"))
		}
		h.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden || codeOf(w.Body.String()) != "read_only" {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	}
}

// jsonl is the line of a fact.
func jsonl(t *testing.T, relation string, tuple ...string) *bytes.Reader {
	t.Helper()
	line, err := json.Marshal(map[string]any{"relation": relation, "tuple": tuple})
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(line)
}
