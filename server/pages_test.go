package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// page is what a client takes of one.
type page struct {
	Epoch   triegs.Epoch
	Token   string
	Columns []string
	Answers []struct {
		X, Y string
		N    int64
	}
	Next string
}

// TestPages reads all pages of one epoch under a writer, asks for each of them twice,
// and finds every answer once.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, triegs.Options{RetainedEpochs: 1000}, Options{}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	const n = 1000
	var pairs []string
	for i := range n {
		pairs = append(pairs, fmt.Sprint("a", i), "b")
	}
	epoch := s.add(pairs...)
	got := map[string]int{}
	path, pages := "/queries/q/answers?limit=70", 0
	var last page
	for next := path; ; pages++ {
		status, _, body := s.do(http.MethodGet, next, "")
		if next != path {
			if again, _, same := s.do(http.MethodGet, next, ""); again != status || same != body {
				t.Fatalf("the same page again: %d %s", again, same)
			}
		}
		last = page{}
		if err := json.Unmarshal([]byte(body), &last); err != nil || status != 200 || last.Epoch != epoch {
			t.Fatalf("%d %v: %s", status, err, body)
		}
		for _, a := range last.Answers {
			got[a.X] += int(a.N)
		}
		s.add("a0", "b")
		if last.Next == "" {
			break
		}
		next = "/queries/q/answers?limit=70&after=" + last.Next
	}
	if len(got) != n || pages != n/70 {
		t.Errorf("%d answers on %d pages", len(got), pages+1)
	}
	for x, k := range got {
		if k != 1 {
			t.Errorf("%s came %d times", x, k)
		}
	}
	if m := s.db.Metrics(); m.Snapshots != 0 {
		t.Errorf("%d snapshots are held behind the last page", m.Snapshots)
	}
	// The position of the pages is one to go on from.
	events := s.follow("/queries/q/updates", last.Token)
	defer events.close()
	events.next() // where it begins
	if u := events.next().update(t); u.From != epoch || len(u.Changes) != 1 || u.Changes[0].Old != 1 {
		t.Errorf("behind the pages: %s", u)
	}
}

// TestPageCursors refuses cursors that are old, of another query or let go of.
func TestPageCursors(t *testing.T) {
	t.Parallel()
	s := newSite(t, triegs.Options{}, Options{MaxPages: 2}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	s.register("p", "p(x, y) :- R(x, y).")
	for i := range 9 {
		s.add("a", fmt.Sprint(i))
	}
	first := func() (p page) {
		s.get("/queries/q/answers?limit=3", 200, &p)
		return p
	}
	path := "/queries/q/answers?limit=3&after="
	p := first()
	gone := func(path string) {
		t.Helper()
		if status, _, body := s.do("GET", path, ""); status != 410 || codeOf(body) != "page_expired" {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	gone("/queries/p/answers?after=" + p.Next)
	gone(path + strings.TrimSuffix(p.Next, "2") + "3")
	if status, _, body := s.do("HEAD", path+p.Next, ""); status != 200 || body != "" {
		t.Errorf("HEAD: %d %s", status, body)
	}
	var second, third page
	s.get(path+p.Next, 200, &second)
	gone(path + strings.TrimSuffix(p.Next, "2") + "1")
	s.get(path+second.Next, 200, &third)
	if third.Next != "" || len(third.Answers) != 3 {
		t.Errorf("the third page is %+v", third)
	}
	gone(path + p.Next)
	// One that is read to its end makes room; those that are not keep theirs.
	kept := []page{first(), first()}
	if status, h, body := s.do("GET", "/queries/q/answers?limit=3", ""); status != 503 || codeOf(body) != "busy" || h.Get("Retry-After") == "" {
		t.Errorf("a third walk: %d %s", status, body)
	}
	if m := s.db.Metrics(); m.Snapshots != 2 {
		t.Errorf("%d snapshots are held, want 2", m.Snapshots)
	}
	var all page
	if s.get("/queries/q/answers", 200, &all); len(all.Answers) != 9 || all.Next != "" {
		t.Errorf("what fits on one page wants no room: %+v", all)
	}
	for _, p := range kept {
		if status, _, _ := s.do("DELETE", "/queries/q/answers?after="+p.Next, ""); status != 204 {
			t.Errorf("let go: %d", status)
		}
		gone(path + p.Next)
	}
	if u := s.handler.Usage(); u.Pages != 0 {
		t.Errorf("in use: %+v", u)
	}
}

// TestPageExpiry lets go of an epoch that nobody reads on, and of one that is read for
// too long.
func TestPageExpiry(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]Options{
		"idle": {PageIdle: 10 * time.Millisecond},
		"age":  {PageIdle: time.Hour, PageAge: 10 * time.Millisecond},
	} {
		s := newSite(t, triegs.Options{}, opts, nil)
		s.register("q", "q(x, y) :- R(x, y).")
		s.add("a", "b", "a", "c")
		var p page
		s.get("/queries/q/answers?limit=1", 200, &p)
		eventually(t, name, func() bool { return s.db.Metrics().Snapshots == 0 && s.handler.Usage().Pages == 0 })
		if status, _, body := s.do("GET", "/queries/q/answers?after="+p.Next, ""); status != 410 || codeOf(body) != "page_expired" {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

// TestPageExpiredPin tells of a snapshot that the store has taken away.
func TestPageExpiredPin(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	s := newSite(t, triegs.Options{MaxPinAge: time.Minute, Tick: -1, Clock: func() time.Time { return now }}, Options{}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	s.add("a", "b", "a", "c", "a", "d")
	var p page
	s.get("/queries/q/answers?limit=1", 200, &p)
	now = now.Add(time.Hour)
	s.add("a", "e")
	if status, _, body := s.do("GET", "/queries/q/answers?limit=1&after="+p.Next, ""); status != 410 || codeOf(body) != "snapshot_expired" {
		t.Errorf("%d %s", status, body)
	}
	if u := s.handler.Usage(); u.Pages != 0 {
		t.Errorf("in use: %+v", u)
	}
}

// TestPageBytes ends a page that becomes large, behind one row at least.
func TestPageBytes(t *testing.T) {
	t.Parallel()
	s := newSite(t, triegs.Options{}, Options{}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	big := strings.Repeat("x", 700<<10)
	s.add("1"+big, "b", "2"+big, "b", "3"+big+big, "b")
	path := "/queries/q/answers"
	n := 0
	for next := path; next != ""; {
		var p page
		s.get(next, 200, &p)
		if len(p.Answers) != 1 {
			t.Fatalf("a page of %d rows", len(p.Answers))
		}
		n++
		if next = ""; p.Next != "" {
			next = path + "?after=" + p.Next
		}
	}
	if n != 3 {
		t.Errorf("%d pages, want 3", n)
	}
}
