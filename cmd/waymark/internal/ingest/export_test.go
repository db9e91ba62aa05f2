package ingest

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/waymarkhq/waymark/client"
)

// Lines reads lines with a limit: what comes out, and the errors in between.
func Lines(r io.Reader, limit int) (lines []string, errs []error) {
	l := &lineReader{r: bufio.NewReaderSize(r, 16), limit: limit}
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			return lines, errs
		}
		if err != nil {
			errs = append(errs, err)
			if !errors.Is(err, errLineTooLong) {
				return lines, errs
			}
			continue
		}
		lines = append(lines, string(line))
	}
}

// Prepare gives a line its ids.
func Prepare(line []byte, documentID, messageID string) ([]byte, client.WaitFor) {
	it := prepare(line, 1, func() string { return documentID }, func() string { return messageID })
	return it.line, it.key
}

func LineID(fileID string, number int) string {
	return lineID(fileID, number, func() string { return "another" })
}

func CountLines(path string) int { return countLines(context.Background(), path) }
