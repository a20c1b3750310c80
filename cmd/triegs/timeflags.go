package main

import (
	"context"
	"errors"
	"time"

	"github.com/triegs/triegs"
)

// span is a length of time on the command line, written as in query texts.
type span time.Duration

// UnmarshalText reads 10m, 1h30m, 7d, PT10M and the like.
func (s *span) UnmarshalText(text []byte) error {
	d, err := triegs.ParseSpan(string(text))
	*s = span(d)
	return err
}

// lateness is a span that may be zero.
type lateness time.Duration

// UnmarshalText reads a span, or 0.
func (l *lateness) UnmarshalText(text []byte) error {
	*l = 0
	if s := string(text); s == "0" || s == "0s" {
		return nil
	}
	return (*span)(l).UnmarshalText(text)
}

// windowFlags give a window to queries whose text has none.
type windowFlags struct {
	Window span `placeholder:"D" help:"A query whose text has no window sees the last D of logical time: 10m, 1h30m, 7d, PT10M."`
	Slide  span `placeholder:"D" help:"The window of --window moves at multiples of D only."`
}

// check refuses what cannot be run.
func (f *windowFlags) check() error {
	if f.Slide > 0 && f.Window == 0 {
		return usagef("--slide wants --window")
	}
	return nil
}

// register registers a query with the window of the flags. A window that its
// text gives it stays.
func (f *windowFlags) register(ctx context.Context, db *triegs.DB, name, text string) (*triegs.Query, error) {
	if f.Window == 0 {
		return db.Register(ctx, name, text)
	}
	q, err := db.Register(ctx, name, text, triegs.Window(time.Duration(f.Window), time.Duration(f.Slide)))
	if errors.Is(err, triegs.ErrValue) {
		return db.Register(ctx, name, text)
	}
	return q, err
}

// eventTimeFlags switch to event time.
type eventTimeFlags struct {
	Lateness *lateness `placeholder:"D" help:"Go by event time: apply events in the order of their times, wait for those that come up to D late. Default: in the order of arrival."`
}

// set puts the flags into the options of a store.
func (f *eventTimeFlags) set(o *triegs.Options) {
	if f.Lateness != nil {
		o.EventTime, o.Lateness = true, time.Duration(*f.Lateness)
	}
}

// lateFlags are those of commands that append events.
type lateFlags struct {
	eventTimeFlags
	Late string `placeholder:"POLICY" help:"Of events that come later than --lateness allows: accept those that a window still holds (default), drop or refuse them."`
}

var latePolicies = map[string]triegs.LatePolicy{
	"": triegs.LateAccept, "accept": triegs.LateAccept, "drop": triegs.LateDrop, "refuse": triegs.LateRefuse,
}

// check refuses what cannot be run.
func (f *lateFlags) check() error {
	if _, ok := latePolicies[f.Late]; !ok {
		return usagef("--late %s: want accept, drop or refuse", f.Late)
	}
	if f.Late != "" && f.Lateness == nil {
		return usagef("--late wants --lateness")
	}
	return nil
}

// set puts the flags into the options of a store.
func (f *lateFlags) set(o *triegs.Options) {
	f.eventTimeFlags.set(o)
	o.LatePolicy = latePolicies[f.Late]
}
