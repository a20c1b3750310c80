package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/output"
)

// chunk is how much of an event is gathered before it is sent.
const chunk = 32 << 10

// reconnect is how long, in milliseconds, a client should wait before it comes again.
const reconnect = 2000

// stream tells a client of the updates of a query.
type stream struct {
	x     *exchange
	sub   *triegs.Subscription
	enc   *output.Encoder
	each  bool
	parts uint64       // changes in an event, 0 = no limit
	skip  triegs.Token // what the client has without the store knowing, zero for nothing

	buf   []byte
	begun bool         // an event is begun and not ended
	in    uint64       // changes in it
	told  triegs.Token // the id that the client has
	sent  time.Time    // when something was sent last
}

// updates streams updates until the client goes or the subscription ends.
func (x *exchange) updates() error {
	p, err := x.params("snapshot", "from", "each", "part", "as", wherePrefix)
	if err != nil {
		return err
	}
	opts, err := x.subscribing(p)
	if err != nil {
		return err
	}
	parts := p.number("part", 0, 1, 1<<40)
	if p.bad != nil {
		return p.bad
	}
	if err := x.h.admit(); err != nil {
		return err
	}
	defer x.h.dismiss()
	s := &stream{x: x, enc: output.NewEncoder(output.JSONL), each: p.flag("each"), parts: parts}
	if opts.Name == "" {
		s.sub, err = x.subscribe(opts, p.flag("snapshot"))
	} else {
		if err := x.takeName(opts.Name); err != nil {
			return err
		}
		defer x.giveName(opts.Name)
		s.sub, s.skip, err = x.subscribeNamed(opts, p.flag("snapshot"))
	}
	if err != nil {
		return err
	}
	defer s.sub.Close()
	return s.serve()
}

// serve sends the head of the answer, and then all that there is to tell.
func (s *stream) serve() error {
	x, sub := s.x, s.sub
	if sub.Name() != "" {
		x.attach(sub)
	}
	s.enc.Deltas(x.name(), output.ShapeOf(sub.Definition()))
	header := x.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies that gather answers must not
	x.w.WriteHeader(http.StatusOK)
	if x.head() {
		return nil
	}
	// A deadline for the whole request, which the program may have set, is not
	// for one that has no end.
	if x.deadline(x.rc.SetReadDeadline, 0) == nil {
		s.run()
	}
	return nil
}

// subscribing is how the client wants to be told.
func (x *exchange) subscribing(p *params) (triegs.SubscribeOptions, error) {
	opts := triegs.SubscribeOptions{PerEpoch: p.flag("each"), Buffer: x.h.opts.Buffer, Where: p.where()}
	if p.flag("snapshot") {
		opts.Mode = triegs.SnapshotFirst
	}
	from := x.r.Header.Get("Last-Event-ID")
	if from == "" {
		from = p.text("from")
	}
	if opts.Name = p.text("as"); opts.Name != "" {
		// Only so can it go on behind each id that the client may have.
		opts.PerEpoch, opts.Buffer = true, 0
	}
	if from != "" {
		t, err := triegs.ParseToken(from)
		if err != nil {
			return opts, err
		}
		opts.Mode, opts.Token = triegs.FromToken, t
	}
	return opts, p.bad
}

// subscribe begins where the client wants, or with the whole answer where it accepts
// that and the position is not kept.
func (x *exchange) subscribe(opts triegs.SubscribeOptions, snapshot bool) (*triegs.Subscription, error) {
	sub, err := x.h.db.Subscribe(x.ctx, x.name(), opts)
	if snapshot && opts.Mode == triegs.FromToken && (errors.Is(err, triegs.ErrTooOld) || errors.Is(err, triegs.ErrTimeline)) {
		opts.Mode, opts.Token = triegs.SnapshotFirst, triegs.Token{}
		return x.h.db.Subscribe(x.ctx, x.name(), opts)
	}
	return sub, err
}

// admit counts a stream, if there may be one more.
func (h *Handler) admit() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams >= h.opts.MaxStreams {
		return &fault{status: http.StatusServiceUnavailable, code: "busy", message: "too many streams are open"}
	}
	h.streams++
	return nil
}

func (h *Handler) dismiss() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams--
}

// run tells of updates until nothing can be told any more.
func (s *stream) run() {
	s.buf = fmt.Appendf(s.buf, "retry: %d\n\n", reconnect)
	if t := s.sub.Token(); !t.IsZero() && s.skip.IsZero() {
		s.progress(t) // or it would not know where it has begun
	}
	err := s.flush()
	for err == nil {
		if err = s.wait(); err != nil {
			break
		}
		for u, failed := range s.sub.Updates() {
			if err = failed; err == nil {
				err = s.take(u)
			}
			break
		}
	}
	s.last(err)
}

// take tells of an update, unless the client has it: then its id acknowledges it.
func (s *stream) take(u *triegs.Update) error {
	if s.skip.IsZero() {
		return s.update(u)
	}
	if u.Epoch < s.skip.Epoch() {
		return nil
	}
	t := s.skip
	s.skip = triegs.Token{}
	if err := s.sub.Ack(t.Epoch()); err != nil {
		return err
	}
	s.progress(t)
	return s.flush()
}

// errClient says that nothing more can be written to the client.
var errClient = errors.New("the client does not read")

// flush sends what is gathered.
func (s *stream) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	err := s.x.write(s.buf)
	s.buf, s.sent = s.buf[:0], time.Now()
	if err != nil {
		return fmt.Errorf("%w: %w", errClient, err)
	}
	return nil
}

// wait returns when there is something to tell, or the subscription has ended. It keeps
// the connection busy meanwhile.
func (s *stream) wait() error {
	for {
		if err := s.beat(); err != nil {
			return err
		}
		at := s.sub.Token()
		if at.IsZero() || s.sub.Err() != nil {
			return nil // the whole answer, or the end
		}
		ctx, cancel := context.WithDeadline(s.x.ctx, s.sent.Add(s.x.h.opts.Heartbeat))
		err := s.x.h.db.WaitFor(ctx, at.Epoch()+1)
		cancel()
		switch {
		case err == nil:
			return nil
		case s.x.ctx.Err() != nil:
			return s.x.ctx.Err()
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

// beat sends something if nothing was sent for long: the position if it has moved.
func (s *stream) beat() error {
	if time.Since(s.sent) < s.x.h.opts.Heartbeat {
		return nil
	}
	if t := s.sub.Token(); !t.IsZero() && t != s.told && s.skip.IsZero() {
		s.progress(t)
	} else {
		s.buf = append(s.buf, ":\n\n"...)
	}
	return s.flush()
}

// progress makes the event of a position behind which nothing has changed.
func (s *stream) progress(t triegs.Token) {
	s.buf = fmt.Appendf(s.buf, "data: {\"query\":%s,\"epoch\":%d,\"token\":%q}\nevent: progress\nid: %s\n\n",
		output.AppendJSONString(nil, s.x.name()), t.Epoch(), t, t)
	s.told = t
}

// updateHead is what the data of an event has in front of the changes.
type updateHead struct {
	Query   string            `json:"query"`
	Epoch   triegs.Epoch      `json:"epoch"`
	From    triegs.Epoch      `json:"from"`
	Whole   bool              `json:"whole"`
	Time    *time.Time        `json:"time"`
	Offsets map[string]uint64 `json:"offsets"`
}

// begin begins the event of an update.
func (s *stream) begin(u *triegs.Update) error {
	head, err := json.Marshal(updateHead{s.x.name(), u.Epoch, u.From, u.Whole, timeOrNull(u.Time), u.Offsets})
	if err != nil {
		return err
	}
	s.buf = append(append(s.buf, "data: "...), head[:len(head)-1]...)
	s.buf = append(s.buf, ",\"changes\":[\n"...)
	s.begun, s.in = true, 0
	return nil
}

// update tells of one update, as it is walked. Without a change it is told only to
// those who take each epoch, and as the whole answer.
func (s *stream) update(u *triegs.Update) error {
	if s.each || u.Whole {
		if err := s.begin(u); err != nil {
			return err
		}
	}
	for c, err := range u.Changes() {
		if err := s.change(u, c, err); err != nil {
			return err
		}
	}
	if !s.begun {
		return nil
	}
	s.buf = fmt.Appendf(s.buf, "data: ],\"token\":%q}\nevent: update\nid: %s\n\n", u.Token, u.Token)
	s.begun, s.told = false, u.Token
	return s.flush()
}

// change adds a change to the event, or ends it with the error that ends the walk.
func (s *stream) change(u *triegs.Update, c triegs.Change, err error) error {
	if err != nil && (c.Row == nil || !errors.Is(err, triegs.ErrOverflow)) {
		return err
	}
	if s.begun && s.parts > 0 && s.in == s.parts {
		s.buf = append(s.buf, "data: ]}\nevent: part\n\n"...)
		s.begun = false
	}
	if !s.begun {
		if err := s.begin(u); err != nil {
			return err
		}
	}
	s.buf = append(s.buf, "data: "...)
	if s.in++; s.in > 1 {
		s.buf = append(s.buf, ',')
	}
	s.buf = append(s.enc.AppendChange(s.buf, u.Epoch, c, err != nil), '\n')
	if len(s.buf) < chunk {
		return nil
	}
	return s.flush()
}

// last tells why the stream ends, as far as the client still reads. An event that was
// begun becomes that of the end, so that it is taken for nothing else.
func (s *stream) last(err error) {
	if err == nil || errors.Is(err, errClient) || s.x.r.Context().Err() != nil {
		return
	}
	if errors.Is(err, context.Canceled) {
		err = context.Cause(s.x.ctx)
	}
	text := faultOf(err).json()
	if s.begun {
		s.buf = append(append(s.buf, "data: ],"...), text[1:]...)
	} else {
		s.buf = append(append(s.buf, "data: "...), text...)
	}
	s.buf = append(s.buf, "\nevent: end\n\n"...)
	_ = s.flush() // there is nobody to tell
}
