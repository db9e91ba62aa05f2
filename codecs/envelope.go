package codecs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"
)

const (
	magic = 0xFB

	formatAt   = 1
	writtenAt  = 2
	checksumAt = 10

	// Overhead is the number of bytes that the envelope adds to a payload.
	Overhead = 14
	// MaxFormat is the highest format that the envelope can name; the lowest is 1.
	MaxFormat = 255
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errNotEnveloped = errors.New("does not begin with an envelope")
	errChecksum     = errors.New("checksum does not match: bytes are missing or damaged")
)

// Envelope is an encoded value taken apart.
type Envelope struct {
	Format    int
	WrittenAt time.Time // UTC, in milliseconds
	Payload   []byte    // shares memory with the encoded value
}

// Open takes an encoded value apart, whatever its format: for tools that look at records of any release. Its error is an
// *Error with ReasonNotEnveloped or ReasonCorrupt.
func Open(b []byte) (Envelope, error) {
	if !enveloped(b) {
		return Envelope{}, &Error{Reason: ReasonNotEnveloped, Raw: keep(b), Err: errNotEnveloped}
	}
	if binary.BigEndian.Uint32(b[checksumAt:]) != checksum(b) {
		return Envelope{}, &Error{Reason: ReasonCorrupt, Raw: keep(b), Err: errChecksum}
	}
	return Envelope{Format: int(b[formatAt]), WrittenAt: writeTime(b), Payload: b[Overhead:]}, nil
}

// WrittenAt is the write time of an encoded value, for the expiry of rows by the clock in the value. It reports false where
// b is not enveloped. It does not verify the checksum: it is meant to be asked of every row of a table.
func WrittenAt(b []byte) (time.Time, bool) {
	if !enveloped(b) {
		return time.Time{}, false
	}
	return writeTime(b), true
}

// SamePayload reports whether two encoded values differ in their write time at most. Values that are not enveloped are
// compared byte for byte. It does not verify checksums.
func SamePayload(a, b []byte) bool {
	if !enveloped(a) || !enveloped(b) {
		return bytes.Equal(a, b)
	}
	return a[formatAt] == b[formatAt] && bytes.Equal(a[Overhead:], b[Overhead:])
}

func enveloped(b []byte) bool {
	return len(b) >= Overhead && b[0] == magic
}

func writeTime(b []byte) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[writtenAt:]))).UTC()
}

// seal fills in the header of b, whose payload already stands behind it.
func seal(b []byte, format int, at time.Time) {
	b[0] = magic
	b[formatAt] = byte(format)
	binary.BigEndian.PutUint64(b[writtenAt:], uint64(at.UnixMilli()))
	binary.BigEndian.PutUint32(b[checksumAt:], checksum(b))
}

func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:checksumAt], castagnoli), castagnoli, b[Overhead:])
}
