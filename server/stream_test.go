package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// events is a client of a stream.
type events struct {
	testing.TB
	resp  *http.Response
	lines *bufio.Reader
	close func()
}

// event is one event as a client takes it.
type event struct{ kind, id, data string }

// follow opens a stream behind an id, "" for none.
func (s *site) follow(path, id string) *events {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	if id != "" {
		r.Header.Set("Last-Event-ID", id)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(resp.Body)
		s.Fatalf("%s: %d %v %s", path, resp.StatusCode, resp.Header, body)
	}
	return &events{s.TB, resp, bufio.NewReader(resp.Body), func() { cancel(); resp.Body.Close() }}
}

// read is the next event. What has no empty line behind it is none.
func (e *events) read() (event, error) {
	var out event
	var data []string
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			return event{}, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "":
			if data == nil {
				continue // a heartbeat, or the time to reconnect
			}
			out.data = strings.Join(data, "\n")
			return out, nil
		case "data":
			data = append(data, value)
		case "event":
			out.kind = value
		case "id":
			out.id = value
		}
	}
}

func (e *events) next() event {
	e.Helper()
	out, err := e.read()
	if err != nil {
		e.Fatalf("no event: %v", err)
	}
	return out
}

// told is the data of an update.
type told struct {
	Query       string
	Epoch, From triegs.Epoch
	Whole       bool
	Token       string
	Changes     []struct {
		Epoch    triegs.Epoch
		X, Y     string
		Old, New int64
	}
}

func (e event) update(t testing.TB) (u told) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.data), &u); err != nil {
		t.Fatalf("%v in %+v", err, e)
	}
	return u
}

// String is short: "5<3 whole [a,b:0>1]".
func (u told) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d<%d", u.Epoch, u.From)
	if u.Whole {
		b.WriteString(" whole")
	}
	for _, c := range u.Changes {
		fmt.Fprintf(&b, " %s,%s:%d>%d", c.X, c.Y, c.Old, c.New)
	}
	return b.String()
}

// TestStream reads each kind of stream.
func TestStream(t *testing.T) {
	t.Parallel()
	s := newSite(t, triegs.Options{RetainedEpochs: 2}, Options{Heartbeat: 20 * time.Millisecond}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	s.register("other", "other(x, y) :- S(x, y).")
	s.add("a", "b")
	want := func(e *events, want string) string {
		t.Helper()
		for {
			got := e.next()
			if got.kind == "progress" {
				continue
			}
			if got.kind != "update" {
				t.Fatalf("got %+v", got)
			}
			if u := got.update(t); u.String() != want || u.Token != got.id || u.Query != "q" {
				t.Fatalf("got %s, want %s (%+v)", u, want, got)
			}
			return got.id
		}
	}
	whole := s.follow("/queries/q/updates?snapshot=1", "")
	defer whole.close()
	first := want(whole, "3<3 whole a,b:0>1")
	each := s.follow("/queries/q/updates?each=1", "")
	defer each.close()
	only := s.follow("/queries/q/updates?where.x=%22a%22", "")
	defer only.close()
	for _, e := range []*events{each, only} {
		if got := e.next(); got.kind != "progress" || got.id != first {
			t.Fatalf("begins with %+v, want progress at %s", got, first)
		}
	}
	s.add("b", "c")
	want(whole, "4<3 b,c:0>1")
	want(each, "4<3 b,c:0>1")
	// What changes nothing moves the position: with each by an event of its own, else
	// with the heartbeat.
	if _, err := s.db.Append(t.Context(), triegs.Batch{}); err != nil {
		t.Fatal(err)
	}
	want(each, "5<4")
	var moved event
	for {
		if moved = only.next(); moved.kind != "progress" {
			t.Fatalf("got %+v", moved)
		}
		var p struct{ Epoch triegs.Epoch }
		if err := json.Unmarshal([]byte(moved.data), &p); err != nil {
			t.Fatal(err)
		}
		if p.Epoch == 5 {
			break
		}
	}
	s.add("a", "b", "d", "d")
	want(only, "6<5 a,b:1>2")
	again := s.follow("/queries/q/updates?from="+first, moved.id)
	defer again.close()
	if got := again.next(); got.kind != "progress" || got.id != moved.id {
		t.Fatalf("going on: %+v, want %s", got, moved.id)
	}
	if got := again.next().update(t); got.Epoch != 6 || got.From != 5 || len(got.Changes) != 2 {
		t.Fatalf("going on: %s", got)
	}
	// A position that is not kept is an error, or the whole answer for who takes it.
	if status, _, body := s.do("GET", "/queries/q/updates", "", "Last-Event-ID", first); status != 410 || codeOf(body) != "too_old" {
		t.Errorf("too old: %d %s", status, body)
	}
	anew := s.follow("/queries/q/updates?snapshot=1", first)
	defer anew.close()
	if got := anew.next().update(t); !got.Whole || len(got.Changes) != 3 {
		t.Errorf("anew: %s", got)
	}
	if err := s.db.Drop(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	for {
		if got := whole.next(); got.kind == "end" {
			if codeOf(got.data) != "no_such_query" || got.id != "" {
				t.Errorf("ends with %+v", got)
			}
			break
		}
	}
}
