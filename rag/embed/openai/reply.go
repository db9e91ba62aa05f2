package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// readReply reads the reply to a call with n texts: one vector per text, in the order of the texts, not yet checked. A
// vector with something that is no number has a NaN in its place, so that one bad vector does not spoil the others.
func readReply(body []byte, n int) ([][]float32, error) {
	var reply struct {
		Data []struct {
			Index     *int   `json:"index"`
			Embedding vector `json:"embedding"`
		} `json:"data"`
	}
	err := json.Unmarshal(body, &reply)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		err = json.Unmarshal(withoutBareNaN(body), &reply)
	}
	if err != nil {
		return nil, fmt.Errorf("it is no JSON of embeddings: %w", err)
	}
	if len(reply.Data) != n {
		return nil, fmt.Errorf("%d vectors for %d texts", len(reply.Data), n)
	}
	vectors, seen := make([][]float32, n), make([]bool, n)
	for _, d := range reply.Data {
		switch {
		case d.Index == nil:
			return nil, errors.New("a vector without an index")
		case *d.Index < 0 || *d.Index >= n:
			return nil, fmt.Errorf("a vector with the index %d for %d texts", *d.Index, n)
		case seen[*d.Index]:
			return nil, fmt.Errorf("two vectors with the index %d", *d.Index)
		}
		vectors[*d.Index], seen[*d.Index] = d.Embedding, true
	}
	return vectors, nil
}

// vector reads numbers faster than a []float32 would be read, and takes null and what is out of range for what it is:
// NaN and an infinity.
type vector []float32

// UnmarshalJSON reads b, which is valid JSON.
func (v *vector) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if string(b) == "null" {
		*v = nil
		return nil
	}
	if len(b) < 2 || b[0] != '[' {
		return errors.New("an embedding that is no array of numbers")
	}
	numbers := bytes.TrimSpace(b[1 : len(b)-1])
	if len(numbers) == 0 {
		*v = nil
		return nil
	}
	out := make([]float32, 0, bytes.Count(numbers, []byte{','})+1)
	for len(numbers) > 0 {
		var number []byte
		number, numbers, _ = bytes.Cut(numbers, []byte{','})
		number = bytes.TrimSpace(number)
		if string(number) == "null" {
			out = append(out, float32(math.NaN()))
			continue
		}
		x, err := strconv.ParseFloat(string(number), 32)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return errors.New("an embedding that is no array of numbers")
		}
		out = append(out, float32(x))
	}
	*v = out
	return nil
}

// withoutBareNaN writes null for the words that some JSON writers use for numbers that JSON cannot say.
func withoutBareNaN(body []byte) []byte {
	out := make([]byte, 0, len(body)+64)
	inString := false
	for i := 0; i < len(body); {
		c := body[i]
		switch {
		case inString && c == '\\' && i+1 < len(body):
			out = append(out, c, body[i+1])
			i += 2
			continue
		case c == '"':
			inString = !inString
		case !inString:
			if n := bareNumber(body[i:]); n > 0 {
				out = append(out, "null"...)
				i += n
				continue
			}
		}
		out = append(out, c)
		i++
	}
	return out
}

// bareNumber is the length of such a word at the start of b; 0 if there is none.
func bareNumber(b []byte) int {
	for _, word := range []string{"NaN", "-NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return len(word)
		}
	}
	return 0
}
