package ingest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/rag"
)

const (
	// maxLine is the longest line that is read at all: the highest limit that a server can have.
	maxLine = 64 << 20
	// maxBatchBytes is when a batch is sent although it may have more lines: larger ones would only cost memory.
	maxBatchBytes = 1 << 20
)

var errLineTooLong = fmt.Errorf("the line is longer than %d bytes", maxLine)

// lineReader reads lines of bounded length.
type lineReader struct {
	r      *bufio.Reader
	limit  int
	number int
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 256<<10), limit: maxLine}
}

// next returns the next line that is not blank, without its end, in a slice of its own. errLineTooLong concerns this line
// only; io.EOF and all other errors are the end.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.read()
		line = bytes.TrimSpace(line)
		if l.number == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if len(line) > 0 || err != nil {
			return line, err
		}
	}
}

func (l *lineReader) read() ([]byte, error) {
	var line []byte
	tooLong := false
	l.number++
	for {
		piece, err := l.r.ReadSlice('\n')
		if len(line)+len(piece) > l.limit {
			line, tooLong = nil, true
		}
		if !tooLong {
			line = append(line, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case tooLong:
			return nil, errLineTooLong
		case err != nil && len(bytes.TrimSpace(line)) == 0:
			return nil, io.EOF
		}
		return line, nil
	}
}

// idle reports whether the next line would have to be waited for, as far as can be told.
func (l *lineReader) idle() bool { return l.r.Buffered() == 0 }

// item is a line on its way, with the ids under which its document is followed.
type item struct {
	number int
	line   []byte
	key    client.WaitFor // without a document id where the line names none that can be read
}

// prepare gives a line the ids that it lacks. What is wrong with it otherwise is for the API to say: the line is left as
// it is.
func prepare(line []byte, number int, documentID, messageID func() string) item {
	it := item{number: number, line: line}
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &fields) != nil || fields == nil {
		return it
	}
	var added []byte
	it.key.DocumentID, added = idOf(fields, "id", documentID, added)
	it.key.MessageID, added = idOf(fields, "message_id", messageID, added)
	if len(added) == 0 {
		return it
	}
	if len(fields) == 0 {
		added = bytes.TrimSuffix(added, []byte(","))
	}
	// Spliced in behind the brace, so that the rest of the line stays byte for byte what it was.
	it.line = append(append([]byte("{"), added...), line[1:]...)
	return it
}

// idOf is the line's own id or, where it has none, a new one that is added.
func idOf(fields map[string]json.RawMessage, name string, make func() string, added []byte) (string, []byte) {
	raw, ok := fields[name]
	if ok {
		var id string
		if json.Unmarshal(raw, &id) != nil {
			return "", added // not a text; the API refuses it
		}
		return id, added
	}
	id := make()
	quoted, err := json.Marshal(id)
	if err != nil {
		return "", added
	}
	return id, fmt.Appendf(added, "%q:%s,", name, quoted)
}

// lineID is the id of a document that has none, by its place: sent again from the same place, it is the same document.
func lineID(fileID string, number int, other func() string) string {
	id := fmt.Sprintf("%s#%d", fileID, number)
	if len(id) > rag.MaxDocumentIDBytes {
		return other()
	}
	return id
}
