package checker

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Usage is what a process holds, by its own metrics.
type Usage struct {
	MemoryMB, Files, Goroutines float64
}

// Usage asks a process, at the address of its API or of its monitor.
func (a API) Usage(ctx context.Context) (u Usage, err error) {
	status, body, err := a.Call(ctx, "GET", "/metrics")
	if err != nil || status != 200 {
		return u, fmt.Errorf("metrics: status %d: %w", status, err)
	}
	found := 0
	for lines := bufio.NewScanner(strings.NewReader(string(body))); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		to := map[string]*float64{"process_resident_memory_bytes": &u.MemoryMB, "process_open_fds": &u.Files, "go_goroutines": &u.Goroutines}[name]
		if to == nil {
			continue
		}
		if *to, err = strconv.ParseFloat(value, 64); err != nil {
			return u, fmt.Errorf("metric %s: %w", name, err)
		}
		found++
	}
	u.MemoryMB /= 1 << 20
	if found < 3 {
		return u, fmt.Errorf("metrics: %d of memory, files and goroutines are there", found)
	}
	return u, nil
}

// Exceeds says which part of u is above a limit (I9); nil if none is.
func (u Usage) Exceeds(limit Usage) error {
	if u.MemoryMB > limit.MemoryMB || u.Files > limit.Files || u.Goroutines > limit.Goroutines {
		return fmt.Errorf("I9: %+v is above %+v", u, limit)
	}
	return nil
}
