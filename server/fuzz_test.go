package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// FuzzRequest sends anything: the handler answers, in JSON where it refuses, and what
// it had pinned is free afterwards.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][4]string{
		{"GET", "/queries", "", ""},
		{"GET", "/queries/q/answers?limit=1", "", ""},
		{"GET", "/queries/q/answers?after=AAAA.2", "", ""},
		{"GET", "/queries/q/lookup?where.x=%22a%22&where.y=%22b%22", "", ""},
		{"GET", "/queries/q/updates?snapshot=1&part=1&where.x={\"iri\":\"a\"}", "", "t1.x"},
		{"HEAD", "/queries/q/updates?each=1", "", ""},
		{"POST", "/append?source=s&offset=7&batch=2", "{\"relation\":\"R\",\"tuple\":[\"a\",\"b\"]}\n{\"op\":\"commit\",\"time\":5}\n", ""},
		{"POST", "/append?ignore_missing=1", "{\"op\":\"delete\",\"relation\":\"R\",\"tuple\":[\"z\",\"z\"]}", ""},
		{"POST", "/queries/p?set=1&window=1m&slide=10s", "p(x) :- R(x, y).", ""},
		{"DELETE", "/queries/q/answers?after=AAAA.2", "", ""},
		{"OPTIONS", "/queries/%2F/count", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, method, path, body, last string) {
		db, err := triegs.Open("", &triegs.Options{Tick: -1})
		if err != nil {
			t.Fatal(err)
		}
		h, err := New(db, Options{Heartbeat: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Register(t.Context(), "q", "q(x, y) :- R(x, y)."); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Append(t.Context(), triegs.Batch{Events: []triegs.Event{triegs.Edge("R", triegs.String("a"), triegs.String("b")), triegs.Edge("R", triegs.String("a"), triegs.String("c"))}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, "http://store.example"+path, strings.NewReader(body))
		if err != nil {
			t.Skip("no request")
		}
		r.Header.Set("Last-Event-ID", last)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= 400 && method != http.MethodHead && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %q", w.Code, w.Body)
		}
		_ = h.Close() // always nil
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}
