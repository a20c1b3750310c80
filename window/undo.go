package window

// undoKept is the size up to which the undo log keeps its memory between
// epochs, 256 KiB: an epoch of some thousand events.
const undoKept = 256 << 10

// The kinds of undo entries.
const (
	opInserted = iota
	opRemoved
	opRefreshed
	opFramed
	opPut
	opReturned
	opShadowed
)

// undoRemoved is the number of words of an entry for a removed contribution.
const undoRemoved = 4

const (
	kindBits = 3
	kindMask = 1<<kindBits - 1
)

// undoLog lists the operations of the running epoch so that they can be taken
// back in reverse order. An entry ends with a word that holds the kind, the
// relation and the record. Before it come
//
//	inserted   the time: its sequence number follows from counting back
//	removed    time, sequence word, value
//	refreshed  old time, sequence word, old value, new time
//	framed     nothing
//	shadowed   nothing
//	put        time, sequence word
//	returned   nothing: the last sequence number of the relation is free again
type undoLog struct {
	words    []uint64
	ids      []string  // of the removed contributions that had one
	framings []framing // what was replaced
	shadows  []shadowing
}

// framing is what windows a relation had.
type framing struct {
	rel    uint32
	frames *frames // nil = none
}

// op is an entry of the undo log.
type op struct {
	kind     int
	rel, rec uint32
	time     int64 // inserted and refreshed: the time that the contribution has now
	e        entry // removed and refreshed: the contribution as it was; put: as it is
	id       string
	frames   *frames   // framed: as they were
	shadow   shadowing // shadowed: as it was
}

func head(kind int, rel, rec uint32) uint64 {
	return uint64(rel)<<(32+kindBits) | uint64(rec)<<kindBits | uint64(kind)
}

func (u *undoLog) inserted(rel, rec uint32, time int64) {
	u.words = append(u.words, uint64(time), head(opInserted, rel, rec))
}

func (u *undoLog) removed(rel, rec uint32, e entry, id string) {
	u.words = append(u.words, uint64(e.time), e.seq, e.value, head(opRemoved, rel, rec))
	if e.seq&1 != 0 {
		u.ids = append(u.ids, id)
	}
}

func (u *undoLog) refreshed(rel, rec uint32, old entry, time int64) {
	u.words = append(u.words, uint64(old.time), old.seq, old.value, uint64(time), head(opRefreshed, rel, rec))
}

func (u *undoLog) framed(rel uint32, old *frames) {
	u.framings = append(u.framings, framing{rel, old})
	u.words = append(u.words, head(opFramed, rel, 0))
}

// put is for a contribution that came under a number that was given out before.
func (u *undoLog) put(rel, rec uint32, e entry) {
	u.words = append(u.words, uint64(e.time), e.seq, head(opPut, rel, rec))
}

func (u *undoLog) returned(rel uint32) { u.words = append(u.words, head(opReturned, rel, 0)) }

// pop takes the last entry off the log; ok is false when it is empty.
func (u *undoLog) pop() (o op, ok bool) {
	if len(u.words) == 0 {
		return op{}, false
	}
	h := u.drop()
	o = op{kind: int(h & kindMask), rec: uint32(h >> kindBits), rel: uint32(h >> (32 + kindBits))}
	switch o.kind {
	case opFramed:
		last := len(u.framings) - 1
		o.frames = u.framings[last].frames
		u.framings = u.framings[:last]
		return o, true
	case opShadowed:
		last := len(u.shadows) - 1
		o.shadow = u.shadows[last]
		u.shadows = u.shadows[:last]
		return o, true
	case opReturned:
		return o, true
	case opPut:
		o.e.seq, o.e.time = u.drop(), int64(u.drop())
		return o, true
	case opInserted:
		o.time = int64(u.drop())
		return o, true
	case opRefreshed:
		o.time = int64(u.drop())
	}
	o.e.value, o.e.seq, o.e.time = u.drop(), u.drop(), int64(u.drop())
	if o.kind == opRemoved && o.e.seq&1 != 0 {
		last := len(u.ids) - 1
		o.id, u.ids[last] = u.ids[last], ""
		u.ids = u.ids[:last]
	}
	return o, true
}

func (u *undoLog) drop() uint64 {
	w := u.words[len(u.words)-1]
	u.words = u.words[:len(u.words)-1]
	return w
}

func (u *undoLog) reset() {
	clear(u.ids)
	u.words, u.ids, u.framings, u.shadows = u.words[:0], u.ids[:0], nil, nil
}

func (u *undoLog) bytes() int64 {
	return int64(cap(u.words))*8 + int64(cap(u.ids))*16 + int64(cap(u.framings))*16 + int64(cap(u.shadows))*24
}
