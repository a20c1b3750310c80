package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/output"
)

const (
	// liveRetry is how long a server that was there is left alone before it is called
	// again.
	liveRetry = time.Second
	// liveSilence is behind how much silence a connection counts as broken: four times
	// what a server lets pass between two signs of life.
	liveSilence = time.Minute
	// liveAck is how long a server may take to write down what was printed.
	liveAck = 5 * time.Second
)

// live follows a query of a server.
type live struct {
	a      *app
	site   string
	path   string // of the query
	as     string
	secret string
	query  string
	shape  output.Shape
	id     string // the position behind what was printed
	each   bool
	// silence is liveSilence but for tests.
	silence time.Duration
	// busy is held while an event is printed and acknowledged, which the end of the
	// command waits for: what was printed is not to come again.
	busy sync.Mutex

	// Of the event that is being read. It is printed when it is whole.
	head  []byte       // the first line of its data
	lines bytes.Buffer // its changes
	tail  []byte       // the line behind them
	token string
	kind  string
}

// live prints the updates of a server until the context ends, which is no error.
func (c *watchCmd) live(a *app) error {
	if c.Output != string(output.JSONL) {
		return usagef("a server is watched with --output jsonl")
	}
	secret, err := readSecret(c.TokenFile)
	if err != nil {
		return err
	}
	l := &live{a: a, secret: secret, query: c.Name, as: c.As, id: c.From, each: !c.Net, silence: liveSilence}
	l.site = strings.TrimSuffix(c.Dir, "/")
	l.path = l.site + "/queries/" + url.PathEscape(c.Name)
	if err := l.describe(); err != nil {
		return err
	}
	for {
		err := l.follow()
		if a.ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-a.ctx.Done():
			return nil
		case <-time.After(liveRetry):
		}
	}
}

// ask asks the server, and makes an error of every answer that is one.
func (l *live) ask(ctx context.Context, method, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, path, nil)
	if err != nil {
		return nil, usagef("%s: %w", path, err)
	}
	if l.secret != "" {
		r.Header.Set("Authorization", "Bearer "+l.secret)
	}
	if l.id != "" {
		r.Header.Set("Last-Event-ID", l.id)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, &unreachable{err}
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err == nil {
		err = fmt.Errorf("%s: %s", resp.Status, complaint(text))
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		return nil, &unreachable{err}
	}
	return nil, err
}

// unreachable is an error that may be gone when the server is called again.
type unreachable struct{ err error }

func (e *unreachable) Error() string { return e.err.Error() }
func (e *unreachable) Unwrap() error { return e.err }

// complaint is the message of an error that the server has sent.
func complaint(text []byte) string {
	var v struct{ Error struct{ Message string } }
	if json.Unmarshal(text, &v) != nil || v.Error.Message == "" {
		return "no answer of a TrieGS server"
	}
	return v.Error.Message
}

// describe asks what the changes look like.
func (l *live) describe() error {
	resp, err := l.ask(l.a.ctx, http.MethodGet, l.path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var d struct {
		Columns    []string
		Aggregates int
	}
	if err := json.NewDecoder(resp.Body).Decode(&d); err != nil || d.Aggregates < 0 || d.Aggregates > len(d.Columns) {
		return fmt.Errorf("%s: %s", l.path, complaint(nil))
	}
	l.shape.Columns = d.Columns[:len(d.Columns)-d.Aggregates]
	return nil
}

// follow prints updates for as long as the connection holds. An error is one that does
// not go away.
func (l *live) follow() error {
	path := l.path + "/updates?"
	if l.id == "" {
		path += "snapshot=1&"
	}
	if l.each {
		path += "each=1&"
	}
	if l.as != "" {
		path += "as=" + url.QueryEscape(l.as)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.a.ctx))
	defer cancel()
	defer context.AfterFunc(l.a.ctx, func() {
		l.busy.Lock()
		defer l.busy.Unlock()
		cancel()
	})()
	silent := time.AfterFunc(l.silence, cancel)
	defer silent.Stop()
	resp, err := l.ask(ctx, http.MethodGet, strings.TrimRight(path, "?&"))
	if _, ok := errors.AsType[*unreachable](err); ok && l.id != "" {
		return nil
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	l.clear()
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // cut off; what is not whole comes again
		}
		silent.Reset(l.silence)
		switch err := l.line(bytes.TrimSuffix(line, []byte("\n"))); {
		case errors.Is(err, errUntold):
			return nil
		case err != nil:
			return err
		}
	}
}

// clear forgets the event that is being read.
func (l *live) clear() {
	l.lines.Reset()
	l.head, l.tail = l.head[:0], l.tail[:0]
	l.token, l.kind = "", ""
}

// line takes a line of the stream.
func (l *live) line(line []byte) error {
	field, value, _ := bytes.Cut(line, []byte(": "))
	switch string(field) {
	case "data":
		switch {
		case len(l.head) == 0:
			l.head = append(l.head, value...)
		case bytes.HasPrefix(value, []byte("]")):
			l.tail = append(l.tail, value...)
		default:
			l.lines.Write(bytes.TrimPrefix(value, []byte(",")))
			l.lines.WriteByte('\n')
		}
	case "event":
		l.kind = string(value)
	case "id":
		l.token = string(value)
	case "":
		l.busy.Lock()
		defer l.busy.Unlock()
		defer l.clear()
		if l.a.ctx.Err() != nil {
			return nil // it comes again
		}
		return l.event()
	}
	return nil
}

// event prints the event that is whole.
func (l *live) event() error {
	switch l.kind {
	case "end":
		return l.end()
	case "update", "progress":
	default:
		return nil
	}
	t, err := triegs.ParseToken(l.token)
	if err != nil {
		return fmt.Errorf("an event without a position: %w", err)
	}
	again := l.kind == "progress" && l.token == l.id
	l.id = l.token
	if again {
		return nil // where it has begun
	}
	if _, err := l.lines.WriteTo(l.a.stdout); err != nil {
		return err
	}
	w := output.New(l.a.stdout, output.JSONL, false)
	if err := errors.Join(w.Mark(l.query, l.shape, t), w.Flush()); err != nil || l.as == "" {
		return err
	}
	return l.acknowledge()
}

// errUntold ends a connection on which the server could not be told what was printed.
var errUntold = errors.New("the server was not told")

// acknowledge tells the server what was printed. Where that fails the next connection
// does it by its header, before anything else is printed: of what this one still holds
// nobody but a command that is going to end would know.
func (l *live) acknowledge() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.a.ctx), liveAck)
	defer cancel()
	resp, err := l.ask(ctx, http.MethodPost, l.site+"/subscribers/"+url.PathEscape(l.as)+"?token="+l.id)
	if err != nil {
		return errUntold
	}
	_ = resp.Body.Close() // nothing is in it
	return nil
}

// end is why the stream ends, nil where the server may come again.
func (l *live) end() error {
	text := l.head
	if rest, ok := bytes.CutPrefix(l.tail, []byte("],")); ok {
		text = append([]byte("{"), rest...)
	}
	var v struct{ Error struct{ Code string } }
	if json.Unmarshal(text, &v) == nil && v.Error.Code == "closed" {
		return nil
	}
	return errors.New(complaint(text))
}
