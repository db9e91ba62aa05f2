package checker

import (
	"fmt"
	"unicode"
)

// CheckServed is what a reader may rely on: chunks 0 to n-1 of one version, each its slice of the text, together all but
// white space.
func CheckServed(documentID, text string, hits []Hit) error {
	if len(hits) == 0 {
		return fmt.Errorf("%s: nothing is served", documentID)
	}
	covered := make([]bool, len(text))
	for i, h := range hits {
		switch {
		case h.DocumentID != documentID:
			return fmt.Errorf("%s: a chunk of %s", documentID, h.DocumentID)
		case h.Index != i:
			return fmt.Errorf("%s: chunk %d stands at place %d", documentID, h.Index, i)
		case h.Version != hits[0].Version:
			return fmt.Errorf("%s: chunks of versions %d and %d", documentID, hits[0].Version, h.Version)
		case h.Start < 0 || h.End > len(text) || h.Start >= h.End || h.Text != text[h.Start:h.End]:
			return fmt.Errorf("%s: chunk %d is not the slice [%d:%d] of the text", documentID, i, h.Start, h.End)
		}
		for j := h.Start; j < h.End; j++ {
			covered[j] = true
		}
	}
	for i, r := range text {
		if !covered[i] && !unicode.IsSpace(r) {
			return fmt.Errorf("%s: byte %d (%q) is in no chunk", documentID, i, r)
		}
	}
	return nil
}
