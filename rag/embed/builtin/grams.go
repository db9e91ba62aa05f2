package builtin

import "unicode/utf8"

const (
	maxWordRunes = 32 // what of an unknown word counts
	shortestGram = 3
	longestGram  = 5
)

// beginning is the part of an unknown word that its vector depends on.
func beginning(word []byte) []byte {
	end := 0
	for n := 0; n < maxWordRunes && end < len(word); n++ {
		_, size := utf8.DecodeRune(word[end:])
		end += size
	}
	return word[:end]
}

// addGrams adds to sum the mean of the rows of the hashed n-grams of "<word>". word is the beginning of one.
func (t *table) addGrams(sum []float32, word []byte) {
	var (
		buffer [maxWordRunes*utf8.UTFMax + 2]byte
		starts [maxWordRunes + 3]int // of each rune, and the end
		n      int
	)
	text := append(append(append(buffer[:0], '<'), word...), '>')
	for i := 0; i < len(text); n++ {
		starts[n] = i
		_, size := utf8.DecodeRune(text[i:])
		i += size
	}
	starts[n] = len(text)

	grams := 0
	for size := shortestGram; size <= longestGram; size++ {
		grams += max(0, n-size+1)
	}
	weight := 1 / float32(grams)
	for size := shortestGram; size <= longestGram; size++ {
		for i := 0; i+size <= n; i++ {
			t.add(sum, t.words+int(fnv1a(text[starts[i]:starts[i+size]])%uint32(t.buckets)), weight)
		}
	}
}

// fnv1a is the 32-bit hash that the model's buckets were filled by; inlined, unlike hash/fnv, and without a state.
func fnv1a(b []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}
