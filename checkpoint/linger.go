package checkpoint

import (
	"context"
	"fmt"
	"time"
)

// lingering is a vault that waits open for the next Writer, until a timer closes
// it. Whoever takes it out of the Store first, under its mutex, has the vault.
type lingering struct {
	stop    func() bool   // of the timer
	closing bool          // the timer was first
	done    chan struct{} // closed when the vault is, if the timer was first

	// With Options.Activity: what that was at the last look, and how many looks
	// in a row have found it the same.
	activity uint64
	quiet    int
}

// quietLooks is how often a change is looked for while a Store lingers, which
// bounds how much longer than asked for it may take.
const quietLooks = 4

// afterFunc is time.AfterFunc, of which only Stop is used.
func afterFunc(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }

// lingerLocked lets the vault that a Writer has left open wait for another one;
// s.mu must be held. There is no goroutine before the timer ends.
func (s *Store) lingerLocked() {
	if s.o.KeepOpen || s.o.Linger <= 0 || s.mu.kept == nil {
		return
	}
	l := &lingering{done: make(chan struct{})}
	s.mu.lingering = l
	if s.o.Activity == nil {
		l.stop = s.o.after(s.o.Linger, func() { s.endLingering(l) })
		return
	}
	l.activity = s.o.Activity()
	s.lookAgainLocked(l)
}

// lookAgainLocked has a change looked for after a part of the time; s.mu must be
// held.
func (s *Store) lookAgainLocked(l *lingering) {
	l.stop = s.o.after(s.o.Linger/quietLooks, func() { s.endLingering(l) })
}

// stillLocked counts a look for a change, and reports whether there was none for
// the whole time; s.mu must be held.
func (s *Store) stillLocked(l *lingering) bool {
	if s.o.Activity == nil {
		return true
	}
	now := s.o.Activity()
	if now != l.activity {
		l.activity, l.quiet = now, 0
		return false
	}
	l.quiet++
	return l.quiet >= quietLooks
}

// endLingering closes the vault, unless a Writer or Close has taken it or the
// time begins anew.
func (s *Store) endLingering(l *lingering) {
	s.mu.Lock()
	if s.mu.lingering != l {
		s.mu.Unlock()
		return
	}
	if !s.stillLocked(l) {
		s.lookAgainLocked(l)
		s.mu.Unlock()
		return
	}
	l.closing = true
	v := s.mu.kept
	s.mu.kept = nil
	s.mu.Unlock()
	// Nobody is there to be told; what matters to the next Writer is kept in stuck.
	_ = s.unlessStuck(v.Close())
	s.mu.Lock()
	s.mu.lingering = nil
	s.mu.Unlock()
	close(l.done)
}

// claimLocked takes the vault from its timer; s.mu must be held. If the timer was
// first it returns what is to be waited for.
func (s *Store) claimLocked() (closing *lingering) {
	l := s.mu.lingering
	if l == nil || l.closing {
		return l
	}
	s.mu.lingering = nil
	l.stop()
	return nil
}

// takeOver ends the lingering: the vault stays as it is, or the timer was first
// and it is closed when takeOver returns, so that another one can be opened.
func (s *Store) takeOver(ctx context.Context) error {
	s.mu.Lock()
	l := s.claimLocked()
	s.mu.Unlock()
	return s.ended(ctx, l)
}

// ended waits until a timer has closed its vault, which has a deadline. If that is
// stuck, so is whoever waits.
func (s *Store) ended(ctx context.Context, l *lingering) error {
	if l == nil {
		return nil
	}
	select {
	case <-l.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stuck != nil {
		return fmt.Errorf("checkpoint in %s: %w", s.dir, s.mu.stuck)
	}
	return nil
}
