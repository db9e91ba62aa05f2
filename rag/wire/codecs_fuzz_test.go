package wire_test

import (
	"testing"

	"github.com/waymarkhq/waymark/codecs"
)

func FuzzDecodeChunk(f *testing.F)        { fuzzCodec(f, "Chunk") }
func FuzzDecodeVector(f *testing.F)       { fuzzCodec(f, "Vector") }
func FuzzDecodeProgress(f *testing.F)     { fuzzCodec(f, "Progress") }
func FuzzDecodeEvent(f *testing.F)        { fuzzCodec(f, "Event") }
func FuzzDecodeCommand(f *testing.F)      { fuzzCodec(f, "Command") }
func FuzzDecodeReplay(f *testing.F)       { fuzzCodec(f, "Replay") }
func FuzzDecodeChunkerRow(f *testing.F)   { fuzzCodec(f, "ChunkerRow") }
func FuzzDecodeDocumentRow(f *testing.F)  { fuzzCodec(f, "DocumentRow") }
func FuzzDecodeTrackerRow(f *testing.F)   { fuzzCodec(f, "TrackerRow") }
func FuzzDecodeLetterRow(f *testing.F)    { fuzzCodec(f, "LetterRow") }
func FuzzDecodeCachedVector(f *testing.F) { fuzzCodec(f, "CachedVector") }

// fuzzCodec feeds payloads in a good envelope: behind a checksum nothing else would reach the decoder.
func fuzzCodec(f *testing.F, name string) {
	b := behaviours()[name]
	e, err := codecs.Open(b.sample(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(nil))
	f.Add(e.Payload)
	f.Add(e.Payload[:len(e.Payload)/2])
	f.Fuzz(b.fuzz)
}
