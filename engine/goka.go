package engine

import (
	"fmt"
	"hash"
	"log/slog"
)

// hash32 is the name that goka's producer builder needs for its hasher.
type hash32 = hash.Hash32

// rawCodec passes bytes through.
type rawCodec struct{}

// Encode returns the bytes as they are.
func (rawCodec) Encode(v any) ([]byte, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("a value of type %T, want bytes", v)
	}
	return b, nil
}

// Decode returns the bytes as they are.
func (rawCodec) Decode(b []byte) (any, error) { return b, nil }

// gokaLogger writes goka's own messages at the level of debugging: what matters of them the engine says itself.
type gokaLogger struct{ log *slog.Logger }

func (l gokaLogger) Print(v ...any)                 { l.log.Debug(fmt.Sprint(v...)) }
func (l gokaLogger) Println(v ...any)               { l.log.Debug(fmt.Sprint(v...)) }
func (l gokaLogger) Printf(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
