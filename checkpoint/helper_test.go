package checkpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var storeID = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// model is what a checkpoint must hold: chunks newest element first, terms by
// id.
type model struct {
	header Header
	facts  [][]byte
	terms  []string // "id form".
}

// content makes facts and terms of a checkpoint by a seed. nfacts chunks of
// chunk bytes, nterms terms above last.
func content(seed uint64, nfacts, chunk, nterms int, last uint64) (facts [][]byte, ids []uint64, forms [][]byte) {
	r := rand.New(rand.NewPCG(seed, 77))
	for i := range nfacts {
		p := make([]byte, chunk)
		for j := 0; j+8 <= len(p); j += 8 {
			binary.LittleEndian.PutUint64(p[j:], r.Uint64()>>(r.Uint64()%40))
		}
		p[0] = byte(i)
		facts = append(facts, p)
	}
	for range nterms {
		last += 1 + r.Uint64()%5
		ids = append(ids, last)
		forms = append(forms, fmt.Appendf(nil, "http://example.org/%x/%d", r.Uint64(), last))
	}
	return facts, ids, forms
}

// write makes one checkpoint on top of m and returns the model of it. Facts
// and terms are interleaved.
func write(ctx context.Context, s *Store, m model, seed uint64, nfacts, chunk, nterms int) (model, error) {
	w, err := s.Begin(ctx)
	if err != nil {
		return m, err
	}
	defer w.Abort()
	facts, ids, forms := content(seed, nfacts, chunk, nterms, m.header.LastTerm)
	next := model{header: m.header}
	if !w.Full() {
		next.terms = slices.Clone(m.terms)
		next.facts = m.facts
	}
	next.facts = append(slices.Clone(facts), next.facts...)
	for len(facts) > 0 || len(ids) > 0 {
		if len(facts) > 0 {
			if err := w.Facts(facts[0]); err != nil {
				return m, err
			}
			facts = facts[1:]
		}
		for range 100 {
			if len(ids) > 0 {
				if err := w.Term(ids[0], forms[0]); err != nil {
					return m, err
				}
				next.terms = append(next.terms, fmt.Sprintf("%d %s", ids[0], forms[0]))
				next.header.LastTerm = ids[0]
				ids, forms = ids[1:], forms[1:]
			}
		}
	}
	h := &next.header
	h.StoreID = storeID
	h.Epoch, h.LogIndex, h.Time = h.Epoch+10, h.LogIndex+11, int64(seed)-5
	h.Sequence++
	h.Relations = []Relation{{Name: "knows", Arity: 2, Facts: int64(len(next.facts)), Digest: [2]uint64{seed, 1}, Next: seed}}
	h.Waiting = fmt.Appendf(nil, "what waits at %d", seed)
	if err := w.Commit(ctx, *h); err != nil {
		return m, err
	}
	return next, nil
}

// read loads one checkpoint as a model.
func read(ctx context.Context, s *Store, in Info) (m model, err error) {
	r, err := s.Load(ctx, in)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	m.header = r.Header()
	if err := r.Facts(ctx, func(p []byte) error {
		m.facts = append(m.facts, slices.Clone(p))
		return nil
	}); err != nil {
		return m, err
	}
	return m, r.Terms(ctx, func(id uint64, form []byte) error {
		m.terms = append(m.terms, fmt.Sprintf("%d %s", id, form))
		return nil
	})
}

// differ says how two models differ, or "".
func differ(got, want model) string {
	switch {
	case fmt.Sprint(got.header) != fmt.Sprint(want.header):
		return fmt.Sprintf("header %+v, want %+v", got.header, want.header)
	case !slices.EqualFunc(got.facts, want.facts, slices.Equal[[]byte]):
		return fmt.Sprintf("%d chunks of facts, want %d, or other ones", len(got.facts), len(want.facts))
	case !slices.Equal(got.terms, want.terms):
		return fmt.Sprintf("%d terms, want %d, or other ones", len(got.terms), len(want.terms))
	}
	return ""
}

// holds fails the test unless the checkpoint holds the model.
func holds(t *testing.T, s *Store, in Info, want model) {
	t.Helper()
	got, err := read(t.Context(), s, in)
	if err != nil {
		t.Fatalf("load %d.%d: %v", in.Generation, in.Element, err)
	}
	if d := differ(got, want); d != "" {
		t.Fatalf("checkpoint %d.%d: %s", in.Generation, in.Element, d)
	}
}

// mustOpen opens a store and closes it at the end of the test.
func mustOpen(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// mustWrite is write that does not fail.
func mustWrite(t *testing.T, s *Store, m model, seed uint64, nfacts, chunk, nterms int) model {
	t.Helper()
	m, err := write(t.Context(), s, m, seed, nfacts, chunk, nterms)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// openings are how long Pebble may be open.
var openings = map[string]Options{"closed": {}, "kept": {KeepOpen: true}, "lingering": {Linger: time.Hour}}

// inMemory is options for a store in memory.
func inMemory() Options { return Options{FS: vfs.NewMem(), StoreID: storeID} }

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustWriteFile(t *testing.T, path string, p []byte) {
	t.Helper()
	if err := os.WriteFile(path, p, 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustRemove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
