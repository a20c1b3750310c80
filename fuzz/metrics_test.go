package fuzz

import (
	"testing"

	"github.com/triegs/triegs"
)

// wantPins checks the number of open snapshots, and that without one nothing is
// kept for them.
func wantPins(t *testing.T, db *triegs.DB, want int) {
	t.Helper()
	m := db.Metrics()
	if m.Snapshots != want {
		t.Errorf("%d open snapshots, want %d", m.Snapshots, want)
	}
	if want == 0 && m.RetainedBytes != 0 {
		t.Errorf("%d bytes are retained for no snapshot", m.RetainedBytes)
	}
}

// storage is the number of bytes in blocks of all kinds.
func storage(db *triegs.DB) int64 {
	m := db.Metrics()
	return m.LiveBytes + m.PendingBytes + m.RetainedBytes + m.ReusableBytes
}
