package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/input"
)

// maxText is the number of bytes that the text of a query may have.
const maxText = 1 << 20

// body reads the body of a request, with a deadline for each piece.
type body struct {
	x    *exchange
	from io.Reader
}

// Read reads a piece. Behind the last one there is no deadline any more: what watches
// the connection from then on would take it for the end of the client.
func (b *body) Read(p []byte) (int, error) {
	if err := b.x.deadline(b.x.rc.SetReadDeadline, b.x.h.opts.ReadTimeout); err != nil {
		return 0, err
	}
	n, err := b.from.Read(p)
	if errors.Is(err, io.EOF) {
		if err := b.x.deadline(b.x.rc.SetReadDeadline, 0); err != nil {
			return n, err
		}
	}
	return n, err
}

// body is the body of the request, of so many bytes at most.
func (x *exchange) body(limit int64) *body {
	return &body{x, http.MaxBytesReader(x.w, x.r.Body, limit)}
}

// register registers the text in the body.
func (x *exchange) register() error {
	p, err := x.params("set", "distinct", "window", "slide")
	if err != nil {
		return err
	}
	opts := p.queryOptions()
	if p.bad != nil {
		return p.bad
	}
	text, err := io.ReadAll(x.body(maxText))
	if err != nil {
		return err
	}
	q, err := x.h.db.Register(x.ctx, x.name(), string(text), opts...)
	if err != nil {
		return err
	}
	return x.reply(http.StatusCreated, describe(q))
}

// queryOptions are what the parameters say beyond the text.
func (p *params) queryOptions() (opts []triegs.QueryOption) {
	if p.flag("set") {
		opts = append(opts, triegs.Set())
	}
	if p.flag("distinct") {
		opts = append(opts, triegs.Distinct())
	}
	window, slide := p.text("window"), p.text("slide")
	if window == "" {
		if slide != "" {
			p.complain("parameter slide wants window")
		}
		return opts
	}
	w, err := triegs.ParseSpan(window)
	if err != nil {
		p.complain("parameter window: %v", err)
	}
	b, err := triegs.ParseSpan(slide)
	if slide != "" && err != nil {
		p.complain("parameter slide: %v", err)
	}
	return append(opts, triegs.Window(w, b))
}

// drop drops a query.
func (x *exchange) drop() error {
	if _, err := x.params(); err != nil {
		return err
	}
	if err := x.h.db.Drop(x.ctx, x.name()); err != nil {
		return err
	}
	x.send(http.StatusNoContent, nil)
	return nil
}

// applied is how far an append has come.
type applied struct {
	// Epoch is the last that it has made, 0 if none.
	Epoch triegs.Epoch `json:"epoch"`
	// Epochs and Events are how many it has made and applied. What the source had sent
	// before is not among them.
	Epochs uint64 `json:"epochs"`
	Events uint64 `json:"events"`
	// Next is the offset that the source has to send next, where there is a source.
	Next *uint64 `json:"next,omitempty"`
}

// append appends the events in the body.
func (x *exchange) append() error {
	p, err := x.params("source", "offset", "batch", "ignore_missing")
	if err != nil {
		return err
	}
	source := p.text("source")
	opts := input.Options{
		Format: "jsonl", Source: source,
		Offset: p.number("offset", 0, 0, math.MaxInt64),
		Batch:  int(p.number("batch", math.MaxInt32, 1, math.MaxInt32)),
	}
	ignore := p.flag("ignore_missing")
	if (source == "") != (p.text("offset") == "") {
		p.complain("source and offset belong together: the offset is that of the first event")
	}
	if p.bad != nil {
		return p.bad
	}
	text := bufio.NewReader(x.body(x.h.opts.MaxBody))
	if magic, _ := text.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) || x.r.Header.Get("Content-Encoding") != "" {
		return &fault{status: http.StatusUnsupportedMediaType, code: "encoding", message: "the body must not be compressed"}
	}
	opts.Stdin = text
	in, err := input.Open([]string{input.Stdin}, opts)
	if err != nil {
		return err
	}
	defer in.Close()
	var done applied
	err = x.appendAll(in, ignore, &done)
	if source != "" {
		next, _ := x.h.db.Offset(source)
		done.Next = &next
	}
	if err != nil {
		f := *faultOf(err)
		f.applied = &done
		return &f
	}
	return x.reply(http.StatusOK, done)
}

// appendAll appends batch by batch.
func (x *exchange) appendAll(in *input.Stream, ignore bool, done *applied) error {
	for {
		b, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(b.Events) == 0 && b.Time.IsZero() && !x.h.db.EventTime() {
			continue // a watermark alone: the clock would move time to the present
		}
		b.IgnoreMissing = ignore
		events := uint64(len(b.Events))
		var known uint64 // of them
		if b.Source != "" {
			if next, _ := x.h.db.Offset(b.Source); next > b.Offset {
				known = min(next-b.Offset, events)
			}
		}
		epoch, err := x.h.db.Append(x.ctx, b.Batch)
		if err != nil {
			return b.Locate(err)
		}
		if events > 0 && known == events {
			continue // it has made no epoch
		}
		done.Epoch = epoch
		done.Epochs++
		done.Events += events - known
	}
}
