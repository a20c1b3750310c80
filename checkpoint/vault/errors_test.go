package vault

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/triegs/triegs/internal/errs"
)

// TestDamageInOneLine keeps what Pebble adds to an error of damage out of the
// message, and what the error is.
func TestDamageInOneLine(t *testing.T) {
	cause := fmt.Errorf("block 3: checksum\n%w", pebble.ErrCorruption)
	err := explain("read", "dir", cause)
	if !errors.Is(err, errs.ErrCorrupt) || !pebble.IsCorruptionError(err) || !errors.Is(err, cause) {
		t.Errorf("kind lost: %v", err)
	}
	if text := err.Error(); strings.Contains(text, "\n") || !strings.HasSuffix(text, "block 3: checksum") {
		t.Errorf("got %q", text)
	}
}
