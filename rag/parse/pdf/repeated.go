package pdf

import (
	"slices"
	"strings"
	"unicode"
)

const (
	// edgeLines is how many lines at the top and at the bottom of a page may be its header and footer.
	edgeLines = 3
	// leastPages is on how many pages a line must stand to be one.
	leastPages = 3
)

// repeated are the lines, without their numbers, that stand at the edges of most pages, or of most of the odd ones.
func (d *document) repeated() map[string]bool {
	counts := map[string]int{}
	pages := 0
	for _, p := range d.pages {
		if len(p.lines) == 0 {
			continue
		}
		pages++
		seen := map[string]bool{}
		for _, i := range edges(p.lines) {
			if k := pattern(p.lines[i].text); !seen[k] {
				seen[k] = true
				counts[k]++
			}
		}
	}
	repeated := map[string]bool{}
	for k, n := range counts {
		if n >= leastPages && n*5 >= pages*2 {
			repeated[k] = true
		}
	}
	return repeated
}

// kept are the lines of a page without its header and footer. A page of nothing else keeps them.
func kept(lines []line, repeated map[string]bool) []line {
	if len(repeated) == 0 {
		return lines
	}
	drop := map[int]bool{}
	for _, i := range edges(lines) {
		if repeated[pattern(lines[i].text)] {
			drop[i] = true
		}
	}
	if len(drop) == len(lines) {
		return lines
	}
	var rest []line
	for i, l := range lines {
		if !drop[i] {
			rest = append(rest, l)
		}
	}
	return rest
}

// edges are the indexes of the highest and the lowest lines.
func edges(lines []line) []int {
	order := make([]int, len(lines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case lines[a].top > lines[b].top:
			return -1
		case lines[a].top < lines[b].top:
			return 1
		}
		return 0
	})
	if len(order) <= 2*edgeLines {
		return order
	}
	return append(order[:edgeLines:edgeLines], order[len(order)-edgeLines:]...)
}

// pattern is a line with each run of digits as one sign, so that page numbers count as equal.
func pattern(s string) string {
	var b strings.Builder
	digit := false
	for _, r := range s {
		if unicode.IsDigit(r) {
			if !digit {
				b.WriteByte('#')
			}
			digit = true
			continue
		}
		digit = false
		if !unicode.IsSpace(r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}
