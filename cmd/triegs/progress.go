package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/triegs/triegs"
	"golang.org/x/term"
)

// progress keeps one line on standard error up to date, if that is a terminal.
type progress struct {
	w     io.Writer // nil = no terminal
	begun time.Time
	next  time.Time
	phase string // of opening a store
	shown bool
}

// progressEvery is often enough to see that something happens, and too seldom
// to cost anything.
const progressEvery = 200 * time.Millisecond

func (a *app) newProgress() *progress {
	f, ok := a.stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	now := time.Now()
	return &progress{w: f, begun: now, next: now.Add(progressEvery)}
}

// update shows how far the input is.
func (p *progress) update(events uint64, epoch triegs.Epoch) {
	if p.w == nil {
		return
	}
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next, p.shown = now.Add(progressEvery), true
	rate := float64(events) / now.Sub(p.begun).Seconds()
	fmt.Fprintf(p.w, "\r\x1b[K%d events, epoch %d, %.0f events/s", events, epoch, rate)
}

// opening shows how far the opening of a store is. What is read of a checkpoint
// tells only when it begins, so that is shown at once.
func (p *progress) opening(r triegs.RecoveryProgress) {
	if p.w == nil {
		return
	}
	now := time.Now()
	if r.Phase == p.phase && now.Before(p.next) {
		return
	}
	p.next, p.phase, p.shown = now.Add(progressEvery), r.Phase, true
	if r.Last > 0 {
		fmt.Fprintf(p.w, "\r\x1b[Kopening: %s, epoch %d of %d", r.Phase, r.Epoch, r.Last)
		return
	}
	fmt.Fprintf(p.w, "\r\x1b[Kopening: %s of epoch %d", r.Phase, r.Epoch)
}

// done takes the line away.
func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
