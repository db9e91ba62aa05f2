package rag

import "fmt"

// Version is one state of a document: the epoch of the cluster and the offset of the record that made it, in the home
// partition of its document. It is the same on every redelivery and grows with every later record of the document.
// The zero Version means "none". Versions fit in 2^53, so that they survive JSON and every store's numbers.
type Version int64

const (
	versionOffsetBits = 40
	// MaxEpoch is the highest epoch that fits into a Version.
	MaxEpoch = 1<<13 - 1
	// MaxOffset is the highest offset that fits into a Version.
	MaxOffset = 1<<versionOffsetBits - 2
)

// NewVersion packs an epoch and an offset. It fails when one of them does not fit (MaxEpoch, MaxOffset).
func NewVersion(epoch int, offset int64) (Version, error) {
	if epoch < 0 || epoch > MaxEpoch {
		return 0, fmt.Errorf("epoch %d is not between 0 and %d", epoch, MaxEpoch)
	}
	if offset < 0 || offset > MaxOffset {
		return 0, fmt.Errorf("offset %d is not between 0 and %d", offset, int64(MaxOffset))
	}
	return Version(int64(epoch)<<versionOffsetBits | (offset + 1)), nil
}

// Epoch of the cluster in which the version was made.
func (v Version) Epoch() int { return int(v >> versionOffsetBits) }

// Offset of the record that made the version; -1 for the zero Version.
func (v Version) Offset() int64 { return int64(v)&(1<<versionOffsetBits-1) - 1 }

// Revision is one generation of a version. Generation 0 is the first run; each replay of a dead version is one more.
// Chunk ids, receipts and removals carry it, so that a late removal for a dead generation cannot take the replayed one away.
type Revision struct {
	Version    Version
	Generation int
}

// Less orders revisions: by version, then by generation.
func (r Revision) Less(o Revision) bool {
	return r.Version < o.Version || r.Version == o.Version && r.Generation < o.Generation
}

func (r Revision) String() string { return fmt.Sprintf("v%d.%d", int64(r.Version), r.Generation) }
