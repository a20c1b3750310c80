package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/triegs/triegs"
)

// errTaken ends a stream whose name another request has asked for.
var errTaken = &fault{status: http.StatusConflict, code: "name_taken", message: "another stream has taken the name"}

// takeName makes the request the one with the name. A stream that has it ends: mostly
// its client is gone, and nobody has noticed yet.
func (x *exchange) takeName(name string) error {
	x.gone = make(chan struct{})
	for {
		x.h.mu.Lock()
		old := x.h.names[name]
		if old == nil {
			x.h.names[name] = x
			x.h.mu.Unlock()
			return nil
		}
		x.h.mu.Unlock()
		old.end(errTaken)
		late := time.AfterFunc(closeGrace, old.cut)
		select {
		case <-old.gone:
			late.Stop()
		case <-x.ctx.Done():
			return x.ctx.Err()
		}
	}
}

// giveName lets go of the name.
func (x *exchange) giveName(name string) {
	x.h.mu.Lock()
	delete(x.h.names, name)
	x.h.mu.Unlock()
	close(x.gone)
}

// attach makes the subscription the one that is acknowledged under its name.
func (x *exchange) attach(sub *triegs.Subscription) {
	x.h.mu.Lock()
	defer x.h.mu.Unlock()
	x.sub = sub
}

// subscribeNamed begins for a name. skip is how far the client has come without the
// store knowing; up to there nothing is told again.
func (x *exchange) subscribeNamed(opts triegs.SubscribeOptions, snapshot bool) (sub *triegs.Subscription, skip triegs.Token, err error) {
	has := opts.Token
	if err := x.mayHaveName(opts.Name); err != nil {
		return nil, skip, err
	}
	if !has.IsZero() {
		if err := x.ours(x.name(), has); err != nil {
			return nil, skip, err
		}
	}
	sub, err = x.subscribe(opts, snapshot)
	if err != nil || has.IsZero() {
		return sub, skip, err
	}
	begins := sub.Token()
	switch {
	case begins.IsZero():
		_ = sub.Close() // always nil
		sub, err = x.adopt(opts, snapshot)
		return sub, skip, err
	case begins.Epoch() > has.Epoch():
		_ = sub.Close() // always nil
		return nil, skip, &fault{status: http.StatusConflict, code: "acknowledged",
			message: fmt.Sprintf("the name has acknowledged epoch %d, and epoch %d is behind it", begins.Epoch(), has.Epoch())}
	case begins == has:
		return sub, skip, nil
	}
	return sub, has, nil
}

// adopt begins at a position for a name that has acknowledged nothing, and so has only
// the whole answer to begin with. Where the position is not kept it does that.
func (x *exchange) adopt(opts triegs.SubscribeOptions, snapshot bool) (*triegs.Subscription, error) {
	plain := triegs.SubscribeOptions{Mode: opts.Mode, Token: opts.Token}
	probe, err := x.h.db.Subscribe(x.ctx, x.name(), plain)
	if err == nil {
		_ = probe.Close() // always nil
		// Without a place of its own the name begins where it is told to. Should it
		// come to nothing behind this, the client comes again with the same position.
		if err = x.h.db.Forget(x.ctx, opts.Name); err == nil {
			return x.subscribe(opts, snapshot)
		}
	}
	if !snapshot || !errors.Is(err, triegs.ErrTooOld) {
		return nil, err
	}
	opts.Mode, opts.Token = triegs.SnapshotFirst, triegs.Token{}
	return x.h.db.Subscribe(x.ctx, x.name(), opts)
}

// mayHaveName refuses a new name where there are too many.
func (x *exchange) mayHaveName(name string) error {
	names := x.h.db.Subscribers()
	for _, n := range names {
		if n.Name == name {
			return nil
		}
	}
	if len(names) >= x.h.opts.MaxNames {
		return &fault{status: http.StatusServiceUnavailable, code: "busy", message: "there are too many names of subscribers"}
	}
	return nil
}

// ours reports ErrTimeline for a position that is not one of this store up to now.
func (x *exchange) ours(query string, t triegs.Token) error {
	probe, err := x.h.db.Subscribe(x.ctx, query, triegs.SubscribeOptions{Mode: triegs.FromToken, Token: t})
	if err == nil {
		return probe.Close()
	}
	if errors.Is(err, triegs.ErrTooOld) {
		return nil // the name may keep what others do not
	}
	return err
}

// acknowledge says that the client has all up to a position.
func (x *exchange) acknowledge() error {
	p, err := x.params("token")
	if err != nil {
		return err
	}
	t, err := triegs.ParseToken(p.text("token"))
	if err != nil {
		return err
	}
	x.h.mu.Lock()
	var sub *triegs.Subscription
	if owner := x.h.names[x.subscriber()]; owner != nil {
		sub = owner.sub
	}
	x.h.mu.Unlock()
	if sub == nil {
		return &fault{status: http.StatusConflict, code: "not_attached", message: "no stream has the name: its next one acknowledges by Last-Event-ID"}
	}
	if err := x.ours(sub.Query(), t); err != nil {
		return err
	}
	if err := sub.Ack(t.Epoch()); err != nil {
		return err
	}
	x.send(http.StatusNoContent, nil)
	return nil
}

// subscribers lists the names.
func (x *exchange) subscribers() error {
	if _, err := x.params(); err != nil {
		return err
	}
	list := append([]triegs.SubscriberInfo{}, x.h.db.Subscribers()...)
	return x.reply(http.StatusOK, struct {
		Subscribers []triegs.SubscriberInfo `json:"subscribers"`
	}{list})
}

// forget forgets a name. A stream that has it ends.
func (x *exchange) forget() error {
	if _, err := x.params(); err != nil {
		return err
	}
	name := x.subscriber()
	if err := x.takeName(name); err != nil {
		return err
	}
	defer x.giveName(name)
	err := x.h.db.Forget(context.WithoutCancel(x.ctx), name)
	if errors.Is(err, triegs.ErrValue) {
		return &fault{status: http.StatusNotFound, code: "no_such_subscriber", message: "nobody has the name"}
	}
	if err == nil {
		x.send(http.StatusNoContent, nil)
	}
	return err
}
