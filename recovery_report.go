package triegs

import "time"

// Recovery tells what Open has found and done.
func (db *DB) Recovery() RecoveryReport {
	r := db.report
	return RecoveryReport{
		Created: r.Log.Created, Epochs: r.Epochs, Events: r.Events,
		Checkpoint: Epoch(r.Checkpoint), Passed: Epoch(r.Passed), Damaged: r.Damaged, Replanned: r.Replanned,
		LogLost: r.Log.Renewed, CutBytes: r.Log.CutBytes, CutFile: r.Log.CutFile, CutOffset: r.Log.CutOffset,
		Terms: r.Terms, Facts: r.Facts, Views: r.Views, Scan: r.Scan, Replay: r.Replay,
	}
}

// RecoveryReport says what Open has found and done.
type RecoveryReport struct {
	Created bool // the store did not exist before
	// Checkpoint is the epoch of the checkpoint that was loaded, 0 if none.
	Checkpoint Epoch
	// Passed is the epoch of the newest checkpoint where an older state was loaded
	// because the epochs between are kept (Options.RetainedEpochs, RetainFrom): it
	// was replayed instead. Else 0.
	Passed Epoch
	// Damaged are checkpoints that were passed over, each with the reason; none
	// without Options.Fallback.
	Damaged []string
	// Replanned are queries that this build of the library maintains in another
	// way than the one that saved them. Their answers are the same.
	Replanned []string
	Epochs    uint64 // epochs replayed from the log
	Events    uint64 // events in them
	// CutBytes is the length of the torn end of the log, an epoch that was
	// never acknowledged; it was at CutOffset of CutFile, and is gone unless the
	// store was opened read-only.
	CutBytes, CutOffset int64
	CutFile             string
	// LogLost says that the log ended before the checkpoint. Nothing shows that
	// the store has lost an epoch by that, since the checkpoint has all that was
	// in the log up to it, but the disk has lost what was on it; the store goes on
	// in a new timeline.
	LogLost bool
	// Terms and Facts are the times of reading the checkpoint, Views that of
	// building indexes and views from it, Scan that of opening and repairing the
	// log, Replay that of applying what it holds beyond the checkpoint.
	Terms, Facts, Views, Scan, Replay time.Duration
}

// RecoveryProgress tells how far Open is.
type RecoveryProgress struct {
	// Phase is "terms", "facts", "views" while a checkpoint is loaded, then
	// "log". Each is told once when it begins; "log" now and then after that.
	Phase string
	Epoch Epoch // of the checkpoint, or reached in the log
	Last  Epoch // where the log ends, 0 while that is not known
}
