package triegs

import "context"

// Verify recomputes every index and every view of the current epoch from the
// base facts, and the base facts from the live contributions, and compares. It
// returns nil if all is right, ErrCorrupt naming the first difference, or ctx's
// error. Cost: that of registering all queries anew, in time and memory.
// Writers wait only while contributions are compared.
func (db *DB) Verify(ctx context.Context) error {
	s, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.enter(); err != nil {
		return edge(err)
	}
	defer s.leave()
	if err := ctx.Err(); err != nil {
		return edge(err)
	}
	return edge(db.engine.Verify(ctx, s.vector))
}
