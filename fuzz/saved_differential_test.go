package fuzz

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/triegs/triegs"
	"github.com/triegs/triegs/internal/oracle"
	"github.com/triegs/triegs/internal/randq"
)

// savers is what a differential run does with a store on disk beside its epochs:
// it takes checkpoints in between and beside them, closes and opens it, makes
// backups and goes on in what was restored of them, and lets terms come and go in
// such numbers that they are reclaimed.
type savers struct {
	root string // a directory that is free
	dir  string // of the store
	rng  *rand.Rand
	opts triegs.Options
	jobs chan error // the outcome of a checkpoint or backup beside the epochs
	busy bool
	did  map[string]int
}

// newSavers makes one for a case; the seed fixes what is done and when.
func newSavers(root string, seed uint64) *savers {
	s := &savers{
		root: root, dir: filepath.Join(root, "store"), rng: rand.New(rand.NewPCG(seed, 78)),
		jobs: make(chan error, 1), did: map[string]int{},
		opts: triegs.Options{Durability: triegs.SyncNone},
	}
	switch s.rng.IntN(3) {
	case 0:
		s.opts.DictionaryCacheBytes = 1 // less than any text
	case 1:
		s.opts.DictionaryCacheBytes = 1 << 16
	}
	switch s.rng.IntN(3) {
	case 0:
		s.opts.CheckpointBytes = 1 + s.rng.Int64N(2_000)
	case 1:
		s.opts.CheckpointBytes = -1
	}
	return s
}

// open opens the store, or without savers one in memory.
func (s *savers) open() (*triegs.DB, error) {
	if s == nil {
		return triegs.Open("", nil)
	}
	return triegs.Open(s.dir, &s.opts)
}

// wait returns when nothing runs beside the epochs any more.
func (s *savers) wait() error {
	if s == nil || !s.busy {
		return nil
	}
	s.busy = false
	return <-s.jobs
}

// between does something or nothing between two epochs.
func (k *checker) between() error {
	s := k.saves
	act := s.rng.IntN(24)
	if act < 5 {
		// One job at a time, so that a failing case stays small.
		if err := s.wait(); err != nil {
			return err
		}
	}
	switch act {
	case 0:
		s.did["checkpoint"]++
		return k.db.Checkpoint(k.ctx)
	case 1, 2:
		s.did["checkpoint beside epochs"]++
		db := k.db
		s.busy = true
		go func() { s.jobs <- db.Checkpoint(k.ctx) }()
	case 3:
		s.did["reopen"]++
		return k.reopen()
	case 4:
		if s.rng.IntN(3) == 0 {
			s.did["flood"]++
			return k.flood()
		}
		s.did["restore"]++
		return k.restore()
	}
	return nil
}

// reopen closes the store, with snapshots held now and then, and opens it again;
// answers, positions and refusals go on as if nothing had happened.
func (k *checker) reopen() error {
	s := k.saves
	before, err := contentOf(k.db)
	if err != nil {
		return err
	}
	held := k.pins
	k.pins = nil
	if s.rng.IntN(2) == 0 {
		for _, p := range held {
			if err := p.snap.Close(); err != nil {
				return err
			}
		}
		held = nil
	}
	if err := k.db.Close(); err != nil && (len(held) == 0 || !errors.Is(err, triegs.ErrLeaked)) {
		return fmt.Errorf("close with %d snapshots held: %w", len(held), err)
	}
	for _, p := range held {
		for name := range p.want {
			if _, err := gather(p.snap.Answers(name)); !errors.Is(err, triegs.ErrClosed) {
				return fmt.Errorf("a snapshot of a closed store: %w", err)
			}
		}
		if err := p.snap.Close(); err != nil {
			return err
		}
	}
	if k.db, err = s.open(); err != nil {
		return err
	}
	return k.sameContent(before)
}

// sameContent compares the store with what it held.
func (k *checker) sameContent(before string) error {
	after, err := contentOf(k.db)
	if err == nil && after != before {
		err = fmt.Errorf("it was %s, it is %s", before, after)
	}
	if err == nil {
		err = k.db.Verify(k.ctx)
	}
	return err
}

// contentOf sums up all that a store must keep.
func contentOf(db *triegs.DB) (string, error) {
	snap, err := db.Snapshot()
	if err != nil {
		return "", err
	}
	defer snap.Close()
	digest, err := snap.Digest()
	if err != nil {
		return "", err
	}
	var queries []string
	for _, q := range db.Queries() {
		queries = append(queries, fmt.Sprintf("%s@%d", q.Name(), q.Epoch()))
	}
	m := db.Metrics()
	return fmt.Sprintf("epoch %d, time %s, digest %v, sources %v, queries %v, %d facts, %d contributions",
		snap.Epoch(), snap.Time().Format(time.RFC3339Nano), digest, snap.Offsets(), queries, m.Facts, m.Contributions), err
}

// restore makes a backup, a store of it, and goes on in that one.
func (k *checker) restore() error {
	s := k.saves
	s.did["dest"]++
	backup := filepath.Join(s.root, "backup")
	next := filepath.Join(s.root, fmt.Sprint("store", s.did["dest"]))
	before, err := contentOf(k.db)
	if err != nil {
		return err
	}
	if err := k.db.Backup(k.ctx, backup); err != nil {
		return err
	}
	for _, p := range k.pins {
		if err := p.snap.Close(); err != nil {
			return err
		}
	}
	k.pins = nil
	if err := k.db.Close(); err != nil {
		return err
	}
	if err := triegs.Restore(k.ctx, backup, next); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(s.dir), os.RemoveAll(backup)); err != nil {
		return err
	}
	s.dir = next
	if k.db, err = s.open(); err != nil {
		return err
	}
	return k.sameContent(before)
}

// flood brings enough new terms to make the store look for the dead ones, and
// takes them back. Readers hold snapshots meanwhile.
func (k *checker) flood() error {
	const width, rows = 250, 270
	dead := k.db.Metrics().Checkpoints.Terms
	var in []oracle.Event
	for i := range rows {
		e := oracle.Event{Relation: "Flood", Tuple: make([]string, width)}
		for j := range e.Tuple {
			e.Tuple[j] = fmt.Sprintf(`"flood %d %d %d"`, k.epoch, i, j)
		}
		in = append(in, e)
	}
	if err := k.floodEpoch(in); err != nil {
		return err
	}
	for i := range in {
		in[i].Delete = true
	}
	if err := k.floodEpoch(in); err != nil {
		return err
	}
	// What came before the terms were marked may be found dead at the next pass
	// only.
	for range 200 {
		if k.db.Metrics().Checkpoints.Terms > dead {
			k.saves.did["reclamation"]++
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// floodEpoch applies events beside the model, which has nothing to say of them.
func (k *checker) floodEpoch(list []oracle.Event) error {
	b := triegs.Batch{Time: time.Unix(0, 0)}
	for _, e := range list {
		ev := triegs.Event{Relation: e.Relation}
		if e.Delete {
			ev.Op = triegs.Delete
		}
		for _, text := range e.Tuple {
			ev.Tuple = append(ev.Tuple, triegs.String(text))
		}
		b.Events = append(b.Events, ev)
	}
	e, err := k.db.Append(k.ctx, b)
	if err != nil {
		return err
	}
	if k.epoch++; e != k.epoch {
		return fmt.Errorf("got epoch %d, want %d", e, k.epoch)
	}
	return nil
}

// checkSaved runs a case in a store on disk.
func checkSaved(c randq.Case, seed uint64, deep bool) (did map[string]int, err error) {
	root, err := os.MkdirTemp("", "saved")
	if err != nil {
		return nil, err
	}
	s := newSavers(root, seed)
	err = checkWith(c, seed, deep, s)
	return s.did, errors.Join(err, os.RemoveAll(root))
}

// TestOracleSaved is TestOracleFullAcyclic for stores on disk that are saved,
// closed, opened, copied and restored at random moments, with texts of terms on
// the disk or in memory, and with terms that are reclaimed.
func TestOracleSaved(t *testing.T) {
	did := map[string]int{}
	for i := range sized(400, 60, 12) {
		seed := uint64(5_000 + i)
		c := randq.New(seed, randq.Size{Queries: queriesEach, AtomsMax: 5, Epochs: epochsEach})
		done, err := checkSaved(c, seed, i%4 == 0)
		if err != nil {
			t.Fatal(reportWith(c, seed, err, func(c randq.Case) error {
				_, err := checkSaved(c, seed, i%4 == 0)
				return err
			}))
		}
		for what, n := range done {
			did[what] += n
		}
	}
	t.Logf("%v", did)
	for _, what := range []string{"checkpoint", "checkpoint beside epochs", "reopen", "restore", "reclamation"} {
		if did[what] == 0 {
			t.Errorf("no %s was tried", what)
		}
	}
}
