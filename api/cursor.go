package api

import (
	"encoding/base64"
	"encoding/binary"
	"time"
	"unicode/utf8"
)

// cursorFormat is the first byte of a cursor, so that a later form can be told apart.
const cursorFormat = 1

// cursorHead is the format, the seconds and the nanoseconds; the id follows.
const cursorHead = 1 + 8 + 4

// maxCursorBytes bounds the id within a cursor.
const maxCursorBytes = 1 << 10

// encodeCursor makes the opaque text of a mark.
func encodeCursor(m Mark) string {
	b := []byte{cursorFormat}
	b = binary.BigEndian.AppendUint64(b, uint64(m.At.Unix()))
	b = binary.BigEndian.AppendUint32(b, uint32(m.At.Nanosecond()))
	return base64.RawURLEncoding.EncodeToString(append(b, m.ID...))
}

// decodeCursor reads a cursor; the empty one is the zero Mark.
func decodeCursor(text string) (Mark, *Problem) {
	if text == "" {
		return Mark{}, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) <= cursorHead || len(b) > maxCursorBytes || b[0] != cursorFormat || !utf8.Valid(b[cursorHead:]) {
		return Mark{}, problem(kindInvalidParameter, "it is not a next_cursor of an answer").at("query", "cursor")
	}
	at := time.Unix(int64(binary.BigEndian.Uint64(b[1:9])), int64(binary.BigEndian.Uint32(b[9:cursorHead])))
	return Mark{At: at.UTC(), ID: string(b[cursorHead:])}, nil
}
