package triegs

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond, "2d": 48 * time.Hour,
		"PT10M": 10 * time.Minute, "P1DT12H": 36 * time.Hour,
	} {
		if got, err := ParseSpan(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "0s", "-5m", "10", "ten minutes", "P1M", "3000000h", "9999999w"} {
		got, err := ParseSpan(text)
		if !errors.Is(err, ErrValue) || got != 0 || !strings.HasPrefix(err.Error(), "triegs: ") {
			t.Errorf("%q: %v, %v, want ErrValue", text, got, err)
		}
	}
}
