// Package embedtest helps to test embedders and what uses them: a conformance suite that every embed.Embedder must
// pass, and a fake OpenAI-compatible service with deterministic vectors and programmable faults.
package embedtest

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// Vector is the unit vector that a Fake gives to text: a function of the text and the number of dimensions alone, the
// same bits on every machine.
func Vector(text string, dims int) []float32 {
	sum := sha256.Sum256([]byte(text))
	state := binary.LittleEndian.Uint64(sum[:])
	values := make([]float64, dims)
	var square float64
	for i := range values {
		// SplitMix64, its top 53 bits as a number in [-1, 1).
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		x := float64((z^z>>31)>>11)/(1<<52) - 1
		values[i] = x
		// The conversion keeps the compiler from fusing the operations, which would round differently.
		square += float64(x * x)
	}
	length := math.Sqrt(square)
	vector := make([]float32, dims)
	for i, x := range values {
		vector[i] = float32(x / length)
	}
	return vector
}
