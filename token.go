package triegs

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/triegs/triegs/epoch/wal"
	"github.com/triegs/triegs/internal/errs"
)

// Token is a position in the history of a store: an epoch, and what tells that it is
// this history and no other. Tokens are comparable; the zero Token is none.
type Token struct {
	store, timeline wal.ID
	epoch           Epoch
}

// Epoch is the epoch that the position stands behind.
func (t Token) Epoch() Epoch { return t.epoch }

// IsZero reports whether t is the zero Token.
func (t Token) IsZero() bool { return t == Token{} }

const (
	tokenPrefix = "t1." // of the first form of the text
	tokenBytes  = 16 + 16 + 8
)

// String is a short text of letters, digits, '.', '-' and '_' that ParseToken reads.
func (t Token) String() string {
	b := make([]byte, 0, tokenBytes)
	b = append(b, t.store[:]...)
	b = append(b, t.timeline[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(t.epoch))
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// ParseToken reads what String gives. Anything else is ErrValue.
func ParseToken(text string) (Token, error) {
	bad := func() (Token, error) {
		return Token{}, edge(fmt.Errorf("%w: %.60q is no token", ErrValue, text))
	}
	if len(text) != len(tokenPrefix)+base64.RawURLEncoding.EncodedLen(tokenBytes) || text[:len(tokenPrefix)] != tokenPrefix {
		return bad()
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text[len(tokenPrefix):])
	if err != nil {
		return bad()
	}
	var t Token
	copy(t.store[:], b)
	copy(t.timeline[:], b[16:])
	t.epoch = Epoch(binary.BigEndian.Uint64(b[32:]))
	return t, nil
}

// token is the position behind an epoch of this store.
func (db *DB) token(e Epoch) Token {
	return Token{store: db.identity.Store, timeline: db.identity.Timeline, epoch: e}
}

// known reports whether a token is of the history of this store.
func (db *DB) known(t Token) error {
	switch {
	case t.IsZero():
		return fmt.Errorf("%w: no token", ErrValue)
	case t.store != db.identity.Store:
		return fmt.Errorf("%w: the token is of store %s, this is %s", errs.ErrTimeline, t.store, db.identity.Store)
	case t.timeline != db.identity.Timeline:
		return fmt.Errorf("%w: the token is of timeline %s of the store, which is on %s now", errs.ErrTimeline, t.timeline, db.identity.Timeline)
	}
	return nil
}

// Token is the position behind the epoch of the snapshot: a subscription from it
// tells what comes after.
func (s *Snapshot) Token() Token { return s.db.token(s.epoch) }
