package ledger

import "github.com/waymarkhq/waymark/rag"

// Stored reports whether the store must hold a chunk: it has acknowledged it, and the chunk's revision is the one that is
// served, or is in work and not below the fence. row may be nil.
func Stored(row *DocumentRow, rev rag.Revision, index int) bool {
	if row == nil || index < 0 {
		return false
	}
	if row.Served.Revision == rev {
		return index < row.Served.Count
	}
	return rev.Version >= row.Fence && Confirmed(row, rev, index)
}
