package rootvec

import (
	"iter"
	"maps"
)

// Source is the committed position of one source of events.
type Source struct {
	Incarnation string
	Next        uint64 // the offset to send next
	Skipped     uint64 // offsets passed by SkipTo so far
	// Watermark is the time, in nanoseconds since 1970, up to which the source
	// is done; it counts only with HasWatermark.
	Watermark    int64
	HasWatermark bool
	// Explicit says that the source itself has told its watermark, so that it
	// does not follow from its events.
	Explicit bool
}

// Sources are the positions of all sources. The value is immutable: With makes
// another one. The zero value is empty.
//
// It is a large map that is replaced now and then, under a small one of recent
// positions that is copied at each change, so that a change does not cost the
// number of sources.
type Sources struct {
	base, recent map[string]Source
}

// recentMax bounds the copied map.
const recentMax = 32

// SourcesOf is the positions in a map, which nobody changes from here on.
func SourcesOf(all map[string]Source) Sources { return Sources{base: all} }

// Get is the position of a source; ok is false if it was never seen.
func (s Sources) Get(name string) (p Source, ok bool) {
	if p, ok = s.recent[name]; ok {
		return p, true
	}
	p, ok = s.base[name]
	return p, ok
}

// With is s with another position for one source. Amortised cost: that of a few
// dozen copies, and of n/32 more for n sources.
func (s Sources) With(name string, p Source) Sources {
	if len(s.recent) < recentMax {
		recent := make(map[string]Source, len(s.recent)+1)
		maps.Copy(recent, s.recent)
		recent[name] = p
		return Sources{s.base, recent}
	}
	base := make(map[string]Source, len(s.base)+len(s.recent)+1)
	maps.Copy(base, s.base)
	maps.Copy(base, s.recent)
	base[name] = p
	return Sources{base: base}
}

// All lists the sources in no order.
func (s Sources) All() iter.Seq2[string, Source] {
	return func(yield func(string, Source) bool) {
		for name, p := range s.recent {
			if !yield(name, p) {
				return
			}
		}
		for name, p := range s.base {
			if _, newer := s.recent[name]; !newer && !yield(name, p) {
				return
			}
		}
	}
}
