package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// Progress is what a progress bar shows.
type Progress struct {
	Label string
	// Total documents; 0 while it is not known.
	Total int
	// Sent of them are accepted, Done of those have a final status, Failed of those are dead or were refused.
	Sent, Done, Failed int
	Elapsed            time.Duration
	// Note is shown at the end where there is room, e.g. why nothing moves.
	Note string
}

const (
	barLeast = 8
	barMost  = 40
)

// Render draws the bar within width columns: what matters least is left out first. ASCII draws it without line symbols.
func (p Progress) Render(width int, ascii bool) string {
	count := Count(p.Done)
	if p.Total > 0 {
		count += "/" + Count(p.Total)
	}
	parts := []string{count}
	if p.Failed > 0 {
		parts = append(parts, Count(p.Failed)+" failed")
	}
	if p.Total == 0 {
		parts = append(parts, Count(p.Sent)+" sent")
	}
	parts = append(parts, formatElapsed(p.Elapsed))
	if p.Note != "" {
		parts = append(parts, p.Note)
	}
	const gap = "  "
	for len(parts) > 1 && ansi.StringWidth(strings.Join(parts, gap)) > width {
		parts = parts[:len(parts)-1]
	}
	tail := strings.Join(parts, gap)
	room := width - ansi.StringWidth(tail)
	head := ""
	if l := ansi.StringWidth(p.Label) + 1; p.Label != "" && room >= l+barLeast+len(gap) {
		head = p.Label + " "
		room -= l
	}
	if p.Total > 0 && room >= barLeast+1 {
		head += p.bar(min(barMost, room-len(gap)), ascii) + gap
	}
	return ansi.Truncate(head+tail, width, "")
}

// bar draws cells: done, sent but not done, to come.
func (p Progress) bar(cells int, ascii bool) string {
	symbols := [3]string{"█", "▒", "░"}
	if ascii {
		symbols = [3]string{"#", "=", "."}
	}
	done := cells * min(p.Done, p.Total) / p.Total
	sent := max(done, cells*min(p.Sent, p.Total)/p.Total)
	return strings.Repeat(symbols[0], done) + strings.Repeat(symbols[1], sent-done) + strings.Repeat(symbols[2], cells-sent)
}

// formatElapsed is m:ss, or h:mm:ss.
func formatElapsed(d time.Duration) string {
	s := int(d.Seconds())
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// Count writes a number with commas between the thousands: 1,024.
func Count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// UTF8 reports whether the environment's locale, read with getenv, can show line symbols.
func UTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
