package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// process is a command that runs beside the test.
type process struct {
	*testing.T
	stop  context.CancelFunc
	lines *bufio.Reader
	done  chan int
	errs  *lockedBuffer
}

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start starts a command, which the end of the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	p := &process{T: t, stop: stop, lines: bufio.NewReader(r), done: make(chan int, 1), errs: new(lockedBuffer)}
	go func() {
		p.done <- run(ctx, args, strings.NewReader(""), w, p.errs)
		w.Close()
	}()
	t.Cleanup(func() {
		stop()
		r.Close()
	})
	return p
}

// line is the next line that it prints.
func (p *process) line() string {
	p.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.Fatalf("it prints nothing more: %v %s", err, p.errs)
	}
	return strings.TrimSuffix(line, "\n")
}

// end waits for its end, and checks the exit code.
func (p *process) end(want int) {
	p.Helper()
	select {
	case code := <-p.done:
		if code != want {
			p.Fatalf("exit %d, want %d: %s", code, want, p.errs)
		}
	case <-time.After(30 * time.Second):
		p.Fatal("it does not end")
	}
}

// served starts a server on a free port and returns its URL.
func served(t *testing.T, dir string, args ...string) (*process, string) {
	t.Helper()
	p := start(t, append([]string{"serve", dir, "--listen", "127.0.0.1" + ":0"}, args...)...)
	address, ok := strings.CutPrefix(p.line(), "listening on ")
	if !ok {
		t.Fatalf("it prints %q", address)
	}
	return p, address
}

// ask sends a request and returns the status and the body.
func ask(t *testing.T, method, url, body string, tune func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if tune != nil {
		tune(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestServe serves a store, takes writes and follows them, also over a restart of the
// server, and ends cleanly with the signal.
func TestServe(t *testing.T) {
	before := runtime.NumGoroutine()
	dir := filepath.Join(t.TempDir(), "store")
	s, url := served(t, dir)
	if status, text := ask(t, "POST", url+"/queries/q", "q(x, y) :- R(x, y).", nil); status != 201 {
		t.Fatal(status, text)
	}
	w := start(t, "watch", url, "q", "--output", "jsonl", "--as", "w")
	if got := w.line(); !strings.HasPrefix(got, `{"epoch":1,"query":"q","token":"t1.`) {
		t.Errorf("the watch begins with %s", got)
	}
	insert := func(i int) {
		t.Helper()
		if status, text := ask(t, "POST", url+"/append", fmt.Sprintf(`{"relation":"R","tuple":["a",%d]}`, i), nil); status != 200 {
			t.Fatal(status, text)
		}
		want := fmt.Sprintf(`{"epoch":%d,"query":"q","x":"a","y":%d,"old":0,"new":1}`, i+2, i)
		if got := w.line(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := w.line(); !strings.Contains(got, `"token":`) {
			t.Errorf("got %s, want a position", got)
		}
	}
	insert(0)
	insert(1)
	if code, out, complaints := call(t.Context(), "", "answers", dir, "q"); code != exitLocked {
		t.Errorf("beside the server: exit %d %s %s", code, out, complaints)
	}
	s.stop()
	s.end(exitDone)
	s = start(t, "serve", dir, "--listen", strings.TrimPrefix(url, "http://"))
	s.line()
	insert(2)
	w.stop()
	w.end(exitDone)
	// Another one of the name goes on behind what the first has printed.
	if status, text := ask(t, "POST", url+"/append", `{"relation":"R","tuple":["a","late"]}`, nil); status != 200 {
		t.Fatal(status, text)
	}
	w = start(t, "watch", url, "q", "--output", "jsonl", "--as", "w")
	if got := w.line(); !strings.HasPrefix(got, `{"epoch":4,"query":"q","token":"t1.`) {
		t.Errorf("the second watch begins with %s", got)
	}
	if got := w.line(); got != `{"epoch":5,"query":"q","x":"a","y":"late","old":0,"new":1}` {
		t.Errorf("the second watch goes on with %s", got)
	}
	w.line() // its position
	w.stop()
	w.end(exitDone)
	s.stop()
	s.end(exitDone)
	if code, out, complaints := call(t.Context(), "", "answers", dir, "q", "--count"); code != exitDone || out != "q\t4\t4\n" {
		t.Errorf("afterwards: exit %d %s %s", code, out, complaints)
	}
	http.DefaultClient.CloseIdleConnections()
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// TestServeSecret asks for the secret, and without one for the name of this machine.
func TestServeSecret(t *testing.T) {
	const secret = "a-secret-of-some-length"
	path := file(t, "secret", secret+"\n")
	_, url := served(t, filepath.Join(t.TempDir(), "store"), "--token-file", path)
	_, open := served(t, filepath.Join(t.TempDir(), "store"))
	bearer := func(word string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+word) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	for _, tc := range []struct {
		url  string
		tune func(*http.Request)
		want int
	}{
		{url, nil, 401},
		{url, bearer("a-secret-of-some-lengtH"), 401},
		{url, bearer(secret), 200},
		{open, nil, 200},
		{open, host("local" + "host:1"), 200},
		{open, host("[::1]"), 200},
		{open, host("store.example"), 403},
		{open, host("10.0.0.1:80"), 403},
	} {
		if status, text := ask(t, "GET", tc.url+"/health", "", tc.tune); status != tc.want {
			t.Errorf("%s: %d %s, want %d", tc.url, status, text, tc.want)
		}
	}
	if code, _, complaints := call(t.Context(), "", "watch", url, "q", "--output", "jsonl"); code != exitInput || !strings.Contains(complaints, "401") {
		t.Errorf("watch without the secret: exit %d %s", code, complaints)
	}
	if code, _, complaints := call(t.Context(), "", "watch", url, "q", "--output", "jsonl", "--token-file", path); code != exitInput || !strings.Contains(complaints, "no such query") {
		t.Errorf("watch of no query: exit %d %s", code, complaints)
	}
}

// TestServeRefuses does not begin what it could not do safely.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	short := file(t, "short", "secret\n")
	dir := filepath.Join(t.TempDir(), "store")
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--listen", "here"}, exitUsage, "--listen here: want HOST:PORT"},
		{[]string{"--listen", "0.0.0.0" + ":0"}, exitUsage, "other machines reach it"},
		{[]string{"--listen", "127.0.0.1" + ":99999"}, exitInput, "invalid port"},
		{[]string{"--token-file", short}, exitInput, "want one word"},
		{[]string{"--token-file", short + "er"}, exitInput, "no such file"},
		{[]string{"--retain=-1"}, exitUsage, "--retain"},
		{[]string{"--read-only", "--listen", "127.0.0.1" + ":0"}, exitInput, "no such file"},
	} {
		code, out, complaints := call(t.Context(), "", append([]string{"serve", dir}, tc.args...)...)
		if code != tc.code || out != "" || !strings.Contains(complaints, tc.want) {
			t.Errorf("%v: exit %d %q %q, want %d %q", tc.args, code, out, complaints, tc.code, tc.want)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a store was made: %v", err)
	}
}

// TestServeLag takes the place of a subscriber that is too far behind.
func TestServeLag(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	query := file(t, "q.rule", "q(x, y) :- r(x, y).")
	for _, args := range [][]string{{"register", dir, "q", "--query", query}, {"watch", dir, "q", "--as", "w"}} {
		if code, _, complaints := call(t.Context(), "", args...); code != exitDone {
			t.Fatal(complaints)
		}
	}
	s, url := served(t, dir, "--max-lag", "2", "--max-age", "365d")
	lost := func(want bool) {
		t.Helper()
		if status, text := ask(t, "GET", url+"/subscribers", "", nil); status != 200 || strings.Contains(text, `"lost"`) != want {
			t.Errorf("%d %s, want it lost: %v", status, text, want)
		}
	}
	for i := range 3 {
		lost(false)
		if status, text := ask(t, "POST", url+"/append", fmt.Sprintf(`{"relation":"r","tuple":["a",%d]}`, i), nil); status != 200 {
			t.Fatal(status, text)
		}
	}
	lost(true)
	s.stop()
	s.end(exitDone)
}

// TestWatchFar goes on from a position that is far behind, epoch by epoch.
func TestWatchFar(t *testing.T) {
	t.Parallel()
	const epochs = 1500
	dir := filepath.Join(t.TempDir(), "store")
	query := file(t, "q.rule", "q(x, y) :- r(x, y).")
	if code, _, complaints := call(t.Context(), "", "register", dir, "q", "--query", query); code != exitDone {
		t.Fatal(complaints)
	}
	_, out, _ := call(t.Context(), "", "watch", dir, "q")
	fields := strings.Fields(out)
	var input strings.Builder
	for i := range epochs {
		fmt.Fprintf(&input, "{\"relation\":\"r\",\"tuple\":[\"a\",%d]}\n{\"op\":\"commit\"}\n", i)
	}
	if code, _, complaints := call(t.Context(), "", "append", dir, "--input", file(t, "in.jsonl", input.String())); code != exitDone {
		t.Fatal(complaints)
	}
	code, out, complaints := call(t.Context(), "", "watch", dir, "q", "--from", fields[len(fields)-1])
	if code != exitDone || strings.Count(out, "\n") != 2*epochs || !strings.Contains(out, fmt.Sprintf("\n%d\tq\ta\t700\t0\t1\n", 702)) {
		t.Errorf("exit %d %s, %d lines", code, complaints, strings.Count(out, "\n"))
	}
}

// TestWatchUntold prints no more than one update that the server does not know of: where
// it cannot be told, the next connection tells it.
func TestWatchUntold(t *testing.T) {
	t.Parallel()
	token := func(n byte) string {
		return "t1." + base64.RawURLEncoding.EncodeToString(append(bytes.Repeat([]byte{7}, 39), n))
	}
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Header.Get("Last-Event-ID"))
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusConflict)
			return
		}
		for n := byte(1); n <= 9; n++ { // all of them are there before the first is acknowledged
			_, _ = fmt.Fprintf(w, "data: {\"changes\":[\ndata: ],\"token\":%q}\nevent: update\nid: %s\n\n", token(n), token(n))
		}
	}))
	defer srv.Close()
	var out bytes.Buffer
	l := &live{a: &app{ctx: t.Context(), stdout: &out}, site: srv.URL, path: srv.URL, query: "q", as: "n", each: true, silence: time.Minute}
	if err := l.follow(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 1 || l.id != token(1) {
		t.Errorf("%d updates were printed, up to %s:\n%s", n, l.id, out.String())
	}
	if got := fmt.Sprint(asked); got != fmt.Sprint([]string{"GET ", "POST " + token(1)}) {
		t.Errorf("it asked %s", got)
	}
}

// TestWatchBroken prints an update once, when it is whole: behind a connection that
// breaks in the middle of it, and one that falls silent.
func TestWatchBroken(t *testing.T) {
	t.Parallel()
	token := func(n byte) string {
		return "t1." + base64.RawURLEncoding.EncodeToString(append(bytes.Repeat([]byte{7}, 39), n))
	}
	update := func(n byte) string {
		return fmt.Sprintf("data: {\"query\":\"q\",\"changes\":[\ndata: {\"epoch\":%d,\"x\":1}\ndata: ,{\"epoch\":%d,\"x\":2}\ndata: ],\"token\":%q}\nevent: update\nid: %s\n\n", n, n, token(n), token(n))
	}
	const part = "data: {\"query\":\"q\",\"changes\":[\ndata: {\"epoch\":9,\"x\":9}\n"
	calls := make(chan string, 9)
	n := byte(0)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls <- r.Header.Get("Last-Event-ID") + " " + r.URL.RawQuery
		switch n++; n {
		case 1:
			_, _ = io.WriteString(w, update(1)+part) // and the connection breaks
		case 2:
			_, _ = io.WriteString(w, update(2)+part)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done() // the silence
		default:
			_, _ = io.WriteString(w, "data: "+part[6:strings.Index(part, "\n")]+"\ndata: ],\"error\":{\"code\":\"too_old\",\"message\":\"gone\"}}\nevent: end\n\n")
		}
	}))
	defer srv.Close()
	var out bytes.Buffer
	l := &live{a: &app{ctx: t.Context(), stdout: &out}, path: srv.URL, query: "q", each: true}
	// The silence in the second is waited for, and must not be taken for one in the
	// others, however long the server has to wait for its turn.
	for _, l.silence = range []time.Duration{time.Minute, time.Second} {
		if err := l.follow(); err != nil {
			t.Fatal(err)
		}
	}
	l.silence = time.Minute
	if err := l.follow(); err == nil || err.Error() != "gone" {
		t.Errorf("the end: %v", err)
	}
	var want string
	for n := byte(1); n <= 2; n++ {
		want += fmt.Sprintf("{\"epoch\":%d,\"x\":1}\n{\"epoch\":%d,\"x\":2}\n{\"epoch\":%d,\"query\":\"q\",\"token\":%q}\n", n, n, 0x0707070707070700+uint64(n), token(n))
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	close(calls)
	var asked []string
	for c := range calls {
		asked = append(asked, c)
	}
	if got := fmt.Sprint(asked); got != fmt.Sprint([]string{" snapshot=1&each=1", token(1) + " each=1", token(2) + " each=1"}) {
		t.Errorf("it asked %q", asked)
	}
}
