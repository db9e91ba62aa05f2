package ingest

import (
	"bytes"
	"context"
	"os"
)

// count finds out how many documents the sources have. Standard input cannot be counted, and what cannot be read is the
// job's to report.
func (j *Job) count(ctx context.Context, sources []Source) error {
	total := 0
	for _, s := range sources {
		if s.arg == Stdin {
			return nil
		}
		err := s.Walk(ctx, j.cfg.Hidden, &Skipped{}, func(f File) error {
			n := 1
			if f.Err == nil && f.Lines() {
				n = countLines(ctx, f.Path)
			}
			total += n
			return nil
		})
		if err != nil {
			return err
		}
	}
	j.setTotal(total)
	return nil
}

// countLines counts the lines that are not empty; 0 where the file cannot be read.
func countLines(ctx context.Context, path string) int {
	r, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer r.Close()
	n, last := 0, byte('\n')
	buf := make([]byte, 256<<10)
	for ctx.Err() == nil {
		size, err := r.Read(buf)
		for rest := buf[:size]; len(rest) > 0; {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				last = rest[len(rest)-1]
				break
			}
			if i > 0 || last != '\n' {
				n++
			}
			last, rest = '\n', rest[i+1:]
		}
		if err != nil {
			break
		}
	}
	if last != '\n' {
		n++
	}
	return n
}
