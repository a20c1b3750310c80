package triegs

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestOptionsDefaults(t *testing.T) {
	for _, o := range []*Options{nil, {}} {
		c := o.withDefaults()
		if c == o {
			t.Fatal("withDefaults must copy")
		}
		if c.Durability != SyncEpoch || c.SyncInterval != 0 || c.LockWait != time.Second ||
			c.ReadOnly || c.DenseSources || c.MemoryBudget != 0 || c.MaxPinAge != 0 || c.OnEvent != nil {
			t.Errorf("defaults: %+v", c)
		}
		if c.Clock == nil || c.Logger == nil {
			t.Fatal("clock and logger must be set")
		}
		if c.Logger.Enabled(t.Context(), slog.LevelError) {
			t.Error("the default logger must be silent")
		}
		if err := c.validate(); err != nil {
			t.Errorf("defaults are refused: %v", err)
		}
	}
	own := &Options{Durability: SyncInterval, LockWait: -1, MemoryBudget: 7, MaxPinAge: time.Hour}
	c := own.withDefaults()
	if c.SyncInterval != 100*time.Millisecond || c.LockWait != -1 || c.MemoryBudget != 7 || c.MaxPinAge != time.Hour {
		t.Errorf("own values changed: %+v", c)
	}
	if own.SyncInterval != 0 || own.Clock != nil {
		t.Error("withDefaults must not write to its receiver")
	}
}

func TestOptionsValidate(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		want []string
	}{
		{"mode", Options{Durability: 9}, []string{"Durability (SyncMode(9))"}},
		{"interval", Options{Durability: SyncInterval, SyncInterval: -1}, []string{"SyncInterval (-1ns)"}},
		{"interval without its mode", Options{SyncInterval: time.Second}, []string{"with Durability SyncEpoch"}},
		{"budget", Options{MemoryBudget: -1}, []string{"MemoryBudget (-1)"}},
		{"pin age", Options{MaxPinAge: -time.Second}, []string{"MaxPinAge (-1s)"}},
		{"dictionary cache", Options{DictionaryCacheBytes: -1}, []string{"DictionaryCacheBytes (-1)"}},
		{"backup rate", Options{BackupBytesPerSecond: -1}, []string{"BackupBytesPerSecond (-1)"}},
		{"last checkpoint for writing", Options{LastCheckpoint: true}, []string{"LastCheckpoint wants ReadOnly"}},
		{"all at once", Options{Durability: 9, MemoryBudget: -1, MaxPinAge: -1},
			[]string{"Durability", "MemoryBudget", "MaxPinAge"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.o.withDefaults().validate()
			if !errors.Is(err, ErrValue) {
				t.Fatalf("got %v, want ErrValue", err)
			}
			if n := strings.Count(err.Error(), "\n") + 1; n != len(tt.want) {
				t.Errorf("%d complaints, want %d: %v", n, len(tt.want), err)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is missing in %q", w, err)
				}
			}
		})
	}
}

func TestQueryOptions(t *testing.T) {
	if got := gatherQueryOptions(nil); got != (queryOptions{}) {
		t.Errorf("none: %+v", got)
	}
	if got := gatherQueryOptions([]QueryOption{Set(), nil}); got != (queryOptions{set: true}) {
		t.Errorf("Set: %+v", got)
	}
	if got := gatherQueryOptions([]QueryOption{Distinct(), Set()}); got != (queryOptions{set: true, distinct: true}) {
		t.Errorf("both: %+v", got)
	}
}
