package server

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// scaled is n under TRIEGS_FULL, and else few.
func scaled(n, few int) int {
	if os.Getenv("TRIEGS_FULL") != "" {
		return n
	}
	return few
}

// history is what a writer remembers: the answers at each epoch, by an enumeration of
// its own.
type history struct {
	read atomic.Uint64 // the epoch that the client has come to

	mu sync.Mutex
	at map[triegs.Epoch]map[string]int64
}

// ahead is how many epochs the writer may be before the client, so that the test does
// not write what nobody reads.
const ahead = 100

// note enumerates the current epoch.
func (h *history) note(s *site) {
	snap, err := s.db.Snapshot()
	if err != nil {
		s.Error(err)
		return
	}
	defer snap.Close()
	answers := map[string]int64{}
	for row, err := range snap.Answers("q") {
		if err != nil {
			s.Error(err)
			return
		}
		answers[row.Term(0).Lexical()+","+row.Term(1).Lexical()] = row.Multiplicity()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at[snap.Epoch()] = answers
}

// equal waits for the epoch to be noted, and compares.
func (h *history) equal(t testing.TB, e triegs.Epoch, fold map[string]int64) {
	t.Helper()
	var want map[string]int64
	eventually(t, fmt.Sprintf("epoch %d is noted", e), func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		want = h.at[e]
		return want != nil
	})
	if len(want) != len(fold) {
		t.Fatalf("epoch %d: folded to %d answers, want %d", e, len(fold), len(want))
	}
	for k, n := range want {
		if fold[k] != n {
			t.Fatalf("epoch %d: %s is folded to %d, want %d", e, k, fold[k], n)
		}
	}
}

// write makes epochs of a few changes until stop, and notes each.
func (h *history) write(s *site, stop <-chan struct{}) {
	r := rand.New(rand.NewPCG(4, 2))
	var live [][2]string
	for {
		select {
		case <-stop:
			return
		default:
		}
		var b triegs.Batch
		for range 1 + r.IntN(12) {
			f := [2]string{strconv.Itoa(r.IntN(30)), strconv.Itoa(r.IntN(8))}
			op := triegs.Insert
			if len(live) > 120 {
				i := r.IntN(len(live))
				f, op = live[i], triegs.Delete
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			} else {
				live = append(live, f)
			}
			b.Events = append(b.Events, triegs.Event{Op: op, Relation: "R", Tuple: []triegs.Term{triegs.String(f[0]), triegs.String(f[1])}})
		}
		e, err := s.db.Append(s.Context(), b)
		if err != nil {
			s.Error(err)
			return
		}
		h.note(s)
		for uint64(e) > h.read.Load()+ahead {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}
}

// resumer is a client that comes again and again.
type resumer struct {
	*site
	id     string
	epoch  triegs.Epoch
	fold   map[string]int64
	events int
	broken int // events that were cut off
}

// visit reads events until so many bytes have come, and then breaks off, wherever that
// is. Only whole events count.
func (c *resumer) visit(path string, bytes int64, h *history, each bool) {
	c.Helper()
	e := c.follow(path, c.id)
	defer e.close()
	cut := &io.LimitedReader{R: e.resp.Body, N: bytes}
	e.lines = bufio.NewReader(cut)
	for {
		got, err := e.read()
		if err != nil {
			if cut.N == 0 {
				c.broken++
				return
			}
			c.Fatal(err)
		}
		if got.kind == "progress" {
			if c.id == "" {
				c.Fatalf("a stream that begins with the whole answer begins with %+v", got)
			}
			continue
		}
		u := got.update(c.TB)
		switch {
		case got.kind != "update" || u.Whole != (c.id == ""):
			c.Fatalf("got %+v behind %q", got, c.id)
		case !u.Whole && u.From < c.epoch, each && !u.Whole && (u.From != c.epoch || u.Epoch != c.epoch+1):
			c.Fatalf("an update from %d to %d behind epoch %d", u.From, u.Epoch, c.epoch)
		}
		for _, ch := range u.Changes {
			k := ch.X + "," + ch.Y
			if c.fold[k] != ch.Old {
				c.Fatalf("epoch %d: %s was %d, the change says %d", u.Epoch, k, c.fold[k], ch.Old)
			}
			if c.fold[k] = ch.New; ch.New == 0 {
				delete(c.fold, k)
			}
		}
		c.id, c.epoch = got.id, u.Epoch
		c.events++
		h.read.Store(uint64(u.Epoch))
		h.equal(c.TB, u.Epoch, c.fold)
	}
}

// TestSSEResume breaks off a hundred times, at any byte, and goes on by Last-Event-ID
// under a writer: at each id the fold is what an enumeration gives, no epoch comes twice
// and none is missing.
func TestSSEResume(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, path string
		each       bool
	}{
		{"each", "/queries/q/updates?snapshot=1&each=1", true},
		{"net", "/queries/q/updates?snapshot=1", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, triegs.Options{RetainedEpochs: 1 << 20}, Options{Buffer: 1 << 20}, nil)
			s.register("q", "q(x, y) :- R(x, u), R(u, y).")
			h := &history{at: map[triegs.Epoch]map[string]int64{}}
			h.note(s)
			stop := make(chan struct{})
			var writer sync.WaitGroup
			writer.Go(func() { h.write(s, stop) })
			defer writer.Wait()
			defer close(stop)
			r := rand.New(rand.NewPCG(1, 7))
			c := &resumer{site: s, fold: map[string]int64{}}
			for range scaled(1000, 100) {
				most := int64(20_000)
				if c.id == "" {
					most = 40_000 // until the whole answer is there
				}
				c.visit(tc.path, 1+r.Int64N(most), h, tc.each)
			}
			if c.events < 20 || c.broken < 100 {
				t.Errorf("%d events in full, %d broken off", c.events, c.broken)
			}
			eventually(t, "the streams are over", func() bool { return s.handler.Usage().Streams == 0 })
		})
	}
}

// tinyBuffers makes a connection that takes little before it blocks.
type tinyBuffers struct{ net.Listener }

func (l tinyBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// stick connects a client that asks for updates and reads nothing.
func (s *site) stick(path string) net.Conn {
	s.Helper()
	conn, err := net.Dial("tcp", s.httpd.Listener.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10) // smaller is only sooner
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: store.example\r\n\r\n", path); err != nil {
		s.Fatal(err)
	}
	return conn
}

// smallSite serves a store over connections that take little before they block.
func smallSite(t testing.TB, opts Options) *site {
	t.Helper()
	s := newSite(t, triegs.Options{}, opts, func(srv *httptest.Server) { srv.Listener = tinyBuffers{srv.Listener} })
	s.register("q", "q(x, y) :- R(x, y).")
	return s
}

// wide makes an epoch whose changes no buffer takes.
func (s *site) wide(epoch, facts int) {
	s.Helper()
	var pairs []string
	for j := range facts {
		pairs = append(pairs, fmt.Sprintf("a%d", j), strconv.Itoa(epoch))
	}
	s.add(pairs...)
}

// nothingHeld checks that no epoch is kept for anybody, behind one more epoch.
func (s *site) nothingHeld() {
	s.Helper()
	s.add("the", "end")
	if m := s.db.Metrics(); m.Subscriptions != 0 || m.Snapshots != 0 || m.RetainedEpochs != 0 || m.RetainedBytes != 0 {
		s.Errorf("left: %d subscriptions, %d snapshots, %d epochs, %d bytes", m.Subscriptions, m.Snapshots, m.RetainedEpochs, m.RetainedBytes)
	}
}

// TestStuckClient has clients that read nothing, whatever they have asked for: the
// writer makes all its epochs while they are stuck. Closing the handler does not wait
// for their deadline.
func TestStuckClient(t *testing.T) {
	t.Parallel()
	const stuck, epochs = 4, 100
	s := smallSite(t, Options{WriteTimeout: time.Hour})
	for i := range stuck {
		defer s.stick("/queries/q/updates?snapshot=1&each=" + strconv.Itoa(i%2)).Close()
	}
	eventually(t, "all follow", func() bool { return s.handler.Usage().Streams == stuck })
	for i := range epochs {
		s.wide(i, 100)
	}
	subs := s.db.Subscriptions()
	if len(subs) != stuck {
		t.Fatalf("%d subscriptions when the writer is done, want %d that are stuck", len(subs), stuck)
	}
	for _, sub := range subs {
		if sub.Lag == 0 {
			t.Error("one of the clients is not behind: it was not stuck")
		}
	}
	if err := s.handler.Close(); err != nil {
		t.Error(err)
	}
	s.nothingHeld()
}

// TestStuckDeadline ends a client that does not read, and frees what is kept for it.
func TestStuckDeadline(t *testing.T) {
	t.Parallel()
	s := smallSite(t, Options{WriteTimeout: 50 * time.Millisecond})
	s.wide(0, 40_000)
	c := s.stick("/queries/q/updates?snapshot=1")
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err != nil { // it has begun
		t.Fatal(err)
	}
	eventually(t, "the deadline ends it", func() bool { return s.handler.Usage().Streams == 0 })
	s.nothingHeld()
	text, err := io.ReadAll(c) // what was on its way
	if strings.Contains(string(text), "\nid: ") || len(text) == 0 {
		t.Errorf("%d bytes with a whole event were sent before the end (%v)", len(text), err)
	}
}

// TestLimits refuses one stream more than may be, and takes it when there is room.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := newSite(t, triegs.Options{}, Options{MaxStreams: 2}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	first := s.follow("/queries/q/updates", "")
	defer s.follow("/queries/q/updates", "").close()
	status, h, body := s.do(http.MethodGet, "/queries/q/updates", "")
	if status != 503 || codeOf(body) != "busy" || h.Get("Retry-After") == "" {
		t.Errorf("a third stream: %d %s", status, body)
	}
	first.close()
	eventually(t, "room for another", func() bool { return s.handler.Usage().Streams == 1 })
	s.follow("/queries/q/updates", "").close()
}

// TestSlowBody ends requests whose body does not come, also where none is wanted.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	s := newSite(t, triegs.Options{}, Options{ReadTimeout: 20 * time.Millisecond}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	for request, status := range map[string]int{
		"POST /append":           http.StatusRequestTimeout,
		"POST /queries/p":        http.StatusRequestTimeout,
		"GET /queries/q/updates": http.StatusBadRequest,
		"GET /health":            http.StatusBadRequest,
		"GET /nowhere":           http.StatusNotFound,
	} {
		conn, err := net.Dial("tcp", s.httpd.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: store.example\r\nContent-Length: 1000\r\n\r\n{\"relation\":", request); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", request, err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != status {
			t.Errorf("%s: %d %s %v", request, resp.StatusCode, text, err)
		}
	}
}

// TestParts takes large updates in parts, of which only the last has an id.
func TestParts(t *testing.T) {
	t.Parallel()
	s := newSite(t, triegs.Options{}, Options{}, nil)
	s.register("q", "q(x, y) :- R(x, y).")
	var pairs []string
	for j := range 25 {
		pairs = append(pairs, strconv.Itoa(j), "b")
	}
	s.add(pairs...)
	e := s.follow("/queries/q/updates?snapshot=1&part=10", "")
	defer e.close()
	var sizes []int
	for {
		got := e.next()
		sizes = append(sizes, len(got.update(t).Changes))
		if (got.kind == "update") != (got.id != "") {
			t.Errorf("got %+v", got)
		}
		if got.kind == "update" {
			break
		}
	}
	if fmt.Sprint(sizes) != "[10 10 5]" {
		t.Errorf("parts of %v", sizes)
	}
}
