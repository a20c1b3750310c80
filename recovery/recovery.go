// Package recovery opens a store: it brings the engine to the last durable epoch
// from what is on disk, and refuses what is damaged.
//
// At present that is the whole log, replayed in the way in which its epochs were
// applied first; each epoch's content digest is compared with the one that was
// logged.
package recovery

import (
	"context"
	"fmt"
	"time"

	"github.com/triegs/triegs/epoch"
	"github.com/triegs/triegs/epoch/record"
	"github.com/triegs/triegs/epoch/wal"
)

// Report says what opening a store has found and done.
type Report struct {
	Log    wal.Report
	Epochs uint64        // replayed
	Events uint64        // in them
	Scan   time.Duration // opening and repairing the log
	Replay time.Duration
}

// Open opens the log in dir and replays it into e, which must be fresh. On
// error nothing stays open. The clock only measures.
func Open(ctx context.Context, dir string, o wal.Options, e *epoch.Engine, now func() time.Time) (*wal.Log, Report, error) {
	var r Report
	start := now()
	log, found, err := wal.Open(ctx, dir, o)
	if err != nil {
		return nil, r, err
	}
	r.Log, r.Scan = found, now().Sub(start)
	start = now()
	err = log.Replay(ctx, 0, func(index uint64, payload []byte) error {
		rec, err := record.Decode(payload)
		if err != nil {
			return fmt.Errorf("log entry %d: %w", index, err)
		}
		r.Epochs++
		r.Events += uint64(len(rec.Events))
		return e.Replay(ctx, rec)
	})
	r.Replay = now().Sub(start)
	if err != nil {
		_ = log.Close() // the first error is the one to report
		return nil, r, err
	}
	return log, r, nil
}
