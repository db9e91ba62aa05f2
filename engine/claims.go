package engine

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"github.com/waymarkhq/waymark/kafka"
)

// claimFile keeps in the data folder which partitions a group had last in this process.
type claimFile struct {
	path string
	log  *slog.Logger
}

var _ kafka.ClaimMemory = claimFile{}

// claims is nil where the group remembers nothing over its death.
func (r *runner) claims() kafka.ClaimMemory {
	if r.env.Journal == "" {
		return nil
	}
	return claimFile{r.env.Journal + ".claims", r.log}
}

func (f claimFile) Load() []byte {
	b, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.log.Warn("the partitions that were had last cannot be read; others may be given", "error", err)
	}
	return b
}

// Save replaces the file as a whole. It is not synced: what a power cut takes is a claim, and no more.
func (f claimFile) Save(claim []byte) {
	tmp := f.path + ".tmp"
	err := os.WriteFile(tmp, claim, 0o600)
	if err == nil {
		err = os.Rename(tmp, f.path)
	}
	if err != nil {
		f.log.Warn("the partitions that are had now cannot be noted; after a long absence others may be given", "error", err)
	}
}
