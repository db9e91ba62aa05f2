package read

// NewWithWindow makes a Reader with smaller windows, so that a test need not read megabytes.
func NewWithWindow(o Options, bytes int) *Reader {
	r := New(o)
	r.window = bytes
	return r
}
