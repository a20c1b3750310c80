package checkpoint

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// TestWaitingLarge: what waits comes back as it was from one element to the next
// and through a backup, also where it is much larger than a block of a table.
func TestWaitingLarge(t *testing.T) {
	base := t.TempDir()
	s := mustOpen(t, base+"/checkpoint", Options{StoreID: storeID})
	r := rand.New(rand.NewPCG(1, 2))
	commit := func(epoch uint64, size int) []byte {
		t.Helper()
		waiting := make([]byte, size)
		for i := 0; i+8 <= size; i += 8 {
			binary.LittleEndian.PutUint64(waiting[i:], r.Uint64())
		}
		w, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(t.Context(), Header{StoreID: storeID, Epoch: epoch, LogIndex: epoch, Waiting: waiting}); err != nil {
			t.Fatal(err)
		}
		return waiting
	}
	same := func(s *Store, at int, want []byte) {
		t.Helper()
		m, err := read(t.Context(), s, s.List()[at])
		if err != nil || !bytes.Equal(m.header.Waiting, want) {
			t.Fatalf("%d bytes come back, %v; %d went in", len(m.header.Waiting), err, len(want))
		}
	}
	large := commit(1, 2<<20)
	small := commit(2, 100)
	if list := s.List(); list[0].Element != 1 || list[0].Generation != list[1].Generation {
		t.Fatalf("not one chain: %+v", list)
	}
	same(s, 1, large)
	same(s, 0, small)
	dest := mustOpen(t, base+"/backup/checkpoint", Options{})
	if _, err := s.CopyTo(t.Context(), dest, 0); err != nil {
		t.Fatal(err)
	}
	same(dest, 1, large)
	same(dest, 0, small)
}
