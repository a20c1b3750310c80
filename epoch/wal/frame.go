package wal

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"
)

// A frame is what the library stores as one entry; docs/format/log.md draws
// it. Integers are little-endian.
const (
	frameMagic   = "TGfr"
	frameVersion = 1

	offVersion = 4
	offLog     = 8
	offIndex   = 24
	offAcked   = 32
	offLength  = 40
	offPayload = 44

	sumSize       = 8
	frameOverhead = offPayload + sumSize
)

// Reasons why bytes are not a frame.
var (
	errFrameShort   = errors.New("shorter than its frame")
	errFrameMagic   = errors.New("no frame begins here")
	errFrameVersion = errors.New("unknown frame version")
	errFrameLength  = errors.New("frame length does not fit the entry")
	errFrameSum     = errors.New("checksum does not match")
	errFrameAcked   = errors.New("frame acknowledges itself")
	errFrameIndex   = errors.New("wrong entry index")
	errEntryLength  = errors.New("bad length prefix")
)

// frame is a decoded frame. payload aliases the bytes it was read from.
type frame struct {
	log     ID
	index   uint64
	acked   uint64
	payload []byte
}

// appendFrame appends a frame whose acked field and checksum are still zero;
// seal fills them in.
func appendFrame(dst []byte, log ID, index uint64, payload []byte) []byte {
	dst = append(dst, frameMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, frameVersion)
	dst = append(dst, log[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, index)
	dst = binary.LittleEndian.AppendUint64(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	dst = append(dst, payload...)
	return binary.LittleEndian.AppendUint64(dst, 0)
}

// seal completes a frame at the moment it is written, when the index known to
// be durable is the newest.
func seal(b []byte, acked uint64) {
	binary.LittleEndian.PutUint64(b[offAcked:], acked)
	body := len(b) - sumSize
	binary.LittleEndian.PutUint64(b[body:], xxhash.Sum64(b[:body]))
}

// parseFrame decodes b, which must be one whole frame and nothing else. What
// it accepts is exactly what appendFrame and seal would have written.
func parseFrame(b []byte) (frame, error) {
	if len(b) <= frameOverhead {
		return frame{}, errFrameShort
	}
	if string(b[:offVersion]) != frameMagic {
		return frame{}, errFrameMagic
	}
	if binary.LittleEndian.Uint32(b[offVersion:]) != frameVersion {
		return frame{}, errFrameVersion
	}
	if uint64(binary.LittleEndian.Uint32(b[offLength:])) != uint64(len(b)-frameOverhead) {
		return frame{}, errFrameLength
	}
	body := len(b) - sumSize
	if binary.LittleEndian.Uint64(b[body:]) != xxhash.Sum64(b[:body]) {
		return frame{}, errFrameSum
	}
	fr := frame{
		index:   binary.LittleEndian.Uint64(b[offIndex:]),
		acked:   binary.LittleEndian.Uint64(b[offAcked:]),
		payload: b[offPayload:body],
	}
	copy(fr.log[:], b[offLog:])
	if fr.acked >= fr.index {
		return frame{}, errFrameAcked
	}
	return fr, nil
}

// eachFrame searches b for whole frames of the log and calls fn with each and
// the position behind it, until fn returns false. Damage may have moved the
// frames, so every position is tried where the magic, version and log id stand;
// the id is random, so a payload holds them only by intent.
func eachFrame(b []byte, log ID, fn func(fr frame, end int) bool) {
	mark := binary.LittleEndian.AppendUint32([]byte(frameMagic), frameVersion)
	mark = append(mark, log[:]...)
	for at := 0; ; {
		i := bytes.Index(b[at:], mark)
		if i < 0 {
			return
		}
		at += i
		size := 1
		if left := b[at:]; len(left) > frameOverhead {
			n := uint64(binary.LittleEndian.Uint32(left[offLength:])) + frameOverhead
			if n <= uint64(len(left)) {
				if fr, err := parseFrame(left[:n]); err == nil {
					size = int(n)
					if !fn(fr, at+size) {
						return
					}
				}
			}
		}
		at += size
	}
}

// later searches b, the bytes after a bad frame, for whole frames of the log
// and returns the highest index that one of them acknowledges and the highest
// that one of them has.
func later(b []byte, log ID) (acked, index uint64) {
	eachFrame(b, log, func(fr frame, _ int) bool {
		acked, index = max(acked, fr.acked), max(index, fr.index)
		return true
	})
	return acked, index
}
