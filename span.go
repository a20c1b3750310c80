package triegs

import (
	"fmt"
	"time"

	"github.com/triegs/triegs/query"
)

// ParseSpan reads a span of time as query texts have it: 10m, 1h30m, 1.5s, 2d,
// 1w, or in ISO 8601 PT10M, P1DT12H. A day is 24 hours. What is not such a text,
// not positive or longer than time.Duration holds is ErrValue.
func ParseSpan(text string) (time.Duration, error) {
	ns, err := query.ParseSpan(text)
	if err != nil {
		return 0, edge(fmt.Errorf("%w: %w", ErrValue, err))
	}
	return time.Duration(ns), nil
}
