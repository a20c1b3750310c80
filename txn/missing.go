package txn

import (
	"errors"
	"fmt"
	"strings"

	"github.com/triegs/triegs/internal/errs"
)

func isMissing(err error) bool { return errors.Is(err, errs.ErrNoSuchFact) }

// missing names what a retraction did not find.
func missing(ev *Event) error {
	var b strings.Builder
	if ev.ID != "" {
		fmt.Fprintf(&b, "contribution %q", ev.ID)
	}
	if len(ev.Tuple) > 0 {
		if ev.ID != "" {
			b.WriteString(" of ")
		}
		b.WriteString(ev.Relation)
		b.WriteByte('(')
		for i, x := range ev.Tuple {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(clip(x.String()))
		}
		b.WriteByte(')')
	}
	if ev.ID == "" && !ev.Value.IsZero() {
		fmt.Fprintf(&b, " with value %s", clip(ev.Value.String()))
	}
	return fmt.Errorf("%w: %s", errs.ErrNoSuchFact, b.String())
}

// clip shortens what would make an error unreadable.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "..."
}
