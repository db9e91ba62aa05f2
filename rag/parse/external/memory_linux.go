package external

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// groupMemory is how much memory the processes of a group hold, in bytes.
func groupMemory(group int) int64 {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	pages := int64(0)
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		end := bytes.LastIndex(stat, []byte(") ")) // of the name, which may hold anything
		if end < 0 {
			continue
		}
		const groupField, pagesField = 2, 21 // from 0, behind the name
		fields := bytes.Fields(stat[end+2:])
		if len(fields) <= pagesField || string(fields[groupField]) != strconv.Itoa(group) {
			continue
		}
		if n, err := strconv.ParseInt(string(fields[pagesField]), 10, 64); err == nil {
			pages += n
		}
	}
	return pages * int64(os.Getpagesize())
}
