package triegs

import "testing"

// TestCheckpointStatsString is what the command line shows of checkpoints.
func TestCheckpointStatsString(t *testing.T) {
	for _, tc := range []struct {
		stats CheckpointStats
		want  string
	}{
		{CheckpointStats{}, "none yet, 0 bytes of log, 0 taken (0 full), 0 failed"},
		{CheckpointStats{LogBytes: 9, Failed: 2, Error: "no space"}, "none yet, 9 bytes of log, 0 taken (0 full), 2 failed, the last one: no space"},
		{CheckpointStats{Epoch: 7, LogBytes: 9, Taken: 3, Full: 1}, "newest of epoch 7, 9 bytes of log behind it, 3 taken (1 full), 0 failed"},
	} {
		if got := tc.stats.String(); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
