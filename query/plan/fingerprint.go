package plan

import "github.com/cespare/xxhash/v2"

// Fingerprint tells plans apart: those of one text are equal if they keep the
// same indexes, views and states of tracks, but for a chance of 2^-64. It is stable
// over processes, not over versions of the planner.
func (p *Plan) Fingerprint() uint64 { return xxhash.Sum64String(p.Explain().String()) }
