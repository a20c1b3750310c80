package window

// The kinds of entries of the log.
const (
	logWaited  = iota // began to wait
	logDone           // waited, is applied and final
	logKept           // waited, is applied and in the history
	logDropped        // was in the history, is final
	logEffect         // what an event in the history had done
	logFloor          // floor of a relation

	logShift = 60
	logMask  = 1<<logShift - 1
)

// reorderLog lists what the running epoch has done to the reorder buffer, four
// words each: the kind above the reference of the event or the relation, then
//
//	waited, done, kept, dropped   time, rest of the place
//	effect                        head, sequence word, contribution
//	floor                         the floor before
//
// Events and contributions that are of no use any more are given back only by
// Commit.
type reorderLog struct{ words []uint64 }

const logWords = 4

func (l *reorderLog) add(kind uint64, e entry) {
	l.words = append(l.words, kind<<logShift|e.value, uint64(e.time), e.seq, 0)
}

func (l *reorderLog) effect(ref uint64, ev event) {
	l.words = append(l.words, logEffect<<logShift|ref, ev[evHead], ev[evSeq], ev[evOld])
}

func (l *reorderLog) floor(rel uint32, old uint64) {
	l.words = append(l.words, logFloor<<logShift|uint64(rel), old, 0, 0)
}

// commit ends the epoch and keeps what it did.
func (q *reorder) commit() {
	if !q.moved && len(q.log.words) == 0 {
		q.refused = 0
		return
	}
	for w := q.log.words; len(w) > 0; w = w[logWords:] {
		switch w[0] >> logShift {
		case logDone, logDropped:
			q.release(w[0] & logMask)
		case logEffect:
			if w[3] != 0 {
				q.release(w[3] - 1)
			}
		}
	}
	q.finish()
}

// rollback ends the epoch and undoes what it did. It does not look at the
// contributions of the store, nor they at it.
func (q *reorder) rollback(s *Store) {
	if !q.moved && len(q.log.words) == 0 {
		q.refused = 0
		return
	}
	for n := len(q.log.words) - logWords; n >= 0; n -= logWords {
		w := q.log.words[n : n+logWords]
		ref := w[0] & logMask
		e := entry{int64(w[1]), w[2], ref}
		switch w[0] >> logShift {
		case logWaited:
			q.waiting.remove(&q.blocks, e)
			q.release(ref)
		case logDone:
			q.unapplied(ref)
			q.waiting.add(&q.blocks, e)
		case logKept:
			q.note(s, ref, -1)
			q.unapplied(ref)
			q.history.remove(&q.blocks, e)
			q.waiting.add(&q.blocks, e)
		case logDropped:
			q.note(s, ref, 1)
			q.history.add(&q.blocks, e)
		case logEffect:
			q.unapplied(ref)
			ev := q.events.at(ref)
			ev[evHead], ev[evSeq], ev[evOld] = w[1], w[2], w[3]
		case logFloor:
			q.setFloor(uint32(ref), w[1])
		}
	}
	if q.moved {
		q.clock = q.was
	}
	q.finish()
}

// unapplied forgets what an event has done.
func (q *reorder) unapplied(ref uint64) {
	ev := q.events.at(ref)
	old := ev[evOld]
	ev.effect(outNone, 0, 0)
	if old != 0 {
		q.release(old - 1)
	}
}

// finish forgets the epoch, and gives back what is no longer needed.
func (q *reorder) finish() {
	q.moved, q.refused = false, 0
	q.events.trim()
	q.blocks.trim()
	q.names.trim()
	if len(q.deletions) == 0 && q.deletionsMost >= 1024 {
		q.deletions, q.deletionsMost = nil, 0
	}
	q.log.words = emptied(q.log.words, undoKept/8)
	q.released = emptied(q.released, undoKept/24)
	q.tangle.picked = emptied(q.tangle.picked, undoKept/24)
	if len(q.tangle.facts) > undoKept/16 {
		q.tangle.facts = nil
	}
}

// emptied is a list without its elements, and without its memory if that is
// more than to be kept.
func emptied[T any](list []T, most int) []T {
	if cap(list) > most {
		return nil
	}
	return list[:0]
}

// size is the memory that the buffer holds, that of maps estimated.
func (q *reorder) size() int64 {
	return q.events.bytes() + q.names.size() + q.blocks.bytes() +
		int64(cap(q.waiting.dir)+cap(q.history.dir))*8 +
		int64(q.deletionsMost)*32 + int64(cap(q.named))*8 + int64(len(q.floors))*32 +
		int64(cap(q.log.words))*8 + int64(cap(q.released)+cap(q.tangle.picked))*24 +
		int64(len(q.tangle.facts))*16
}
