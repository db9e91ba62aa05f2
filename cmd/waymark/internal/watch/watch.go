// Package watch finds out what changes in files and folders, by looking at them again and again: that works on every
// file system, network ones too, and needs no limits to be raised for large trees.
package watch

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/ingest"
)

const (
	// least is the shortest pause between two looks.
	least = time.Second
	// share of the time that looking may take: 1 in so many.
	share = 20
)

// stamp tells one state of a file from another.
type stamp struct {
	id       string
	size     int64
	modified time.Time
}

// Watcher remembers the state of the sources. It belongs to one goroutine.
type Watcher struct {
	sources []ingest.Source
	hidden  bool
	known   map[string]stamp // by path: what was reported
	last    map[string]stamp // by path: what the look before has seen
}

// Changes since the last report.
type Changes struct {
	Files   []ingest.File
	Deleted []string // document ids
	// Orphaned are files of lines that are gone. Which documents they held is not known, so that these stay.
	Orphaned []string
}

// Empty reports whether there are none.
func (c Changes) Empty() bool { return len(c.Files)+len(c.Deleted)+len(c.Orphaned) == 0 }

// New makes a watcher that takes the present state as known.
func New(ctx context.Context, sources []ingest.Source, hidden bool) (*Watcher, error) {
	w := &Watcher{sources: sources, hidden: hidden}
	now, _, err := w.look(ctx)
	if err != nil {
		return nil, err
	}
	w.known, w.last = now, maps.Clone(now)
	return w, nil
}

// look walks through the sources. Paths that cannot be read keep the state that is known of them.
func (w *Watcher) look(ctx context.Context) (map[string]stamp, map[string]ingest.File, error) {
	stamps, files := map[string]stamp{}, map[string]ingest.File{}
	for _, s := range w.sources {
		if s.Gone() {
			w.keep(s, stamps)
			continue
		}
		err := s.Walk(ctx, w.hidden, &ingest.Skipped{}, func(f ingest.File) error {
			if f.Err != nil || f.Info == nil {
				if old, ok := w.known[f.Path]; ok {
					stamps[f.Path] = old
				}
				return nil
			}
			stamps[f.Path] = stamp{f.ID, f.Info.Size(), f.Info.ModTime()}
			files[f.Path] = f
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return stamps, files, nil
}

// keep leaves everything below a folder that has gone as a whole as it is known: it is more likely that a disk is away than
// that somebody wants all of its documents deleted.
func (w *Watcher) keep(s ingest.Source, stamps map[string]stamp) {
	if !s.Dir() {
		return
	}
	for path, known := range w.known {
		if path == s.Arg() || strings.HasPrefix(path, filepath.Clean(s.Arg())+string(filepath.Separator)) {
			stamps[path] = known
		}
	}
}

// Look reports what has changed. What differs from the look before is still being written or replaced, as far as can be
// told, and is reported by a later one.
func (w *Watcher) Look(ctx context.Context) (Changes, error) {
	now, files, err := w.look(ctx)
	if err != nil {
		return Changes{}, err
	}
	var c Changes
	for path, s := range now {
		if s == w.known[path] {
			continue
		}
		if f, ok := files[path]; ok && s == w.last[path] {
			c.Files = append(c.Files, f)
			w.known[path] = s
		}
	}
	for path, s := range w.known {
		_, there := now[path]
		_, before := w.last[path]
		if there || before {
			continue
		}
		if (ingest.File{Path: path}).Lines() {
			c.Orphaned = append(c.Orphaned, path)
		} else {
			c.Deleted = append(c.Deleted, s.id)
		}
		delete(w.known, path)
	}
	w.last = now
	slices.SortFunc(c.Files, func(a, b ingest.File) int { return cmp.Compare(a.Path, b.Path) })
	slices.Sort(c.Deleted)
	slices.Sort(c.Orphaned)
	return c, nil
}

// Run looks until ctx ends, and hands over what it finds. An error of handle ends it.
func (w *Watcher) Run(ctx context.Context, handle func(Changes) error) error {
	pause := least
	for {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		start := time.Now()
		changes, err := w.Look(ctx)
		if err != nil {
			return err
		}
		pause = max(least, share*time.Since(start))
		if changes.Empty() {
			continue
		}
		if err := handle(changes); err != nil {
			return err
		}
	}
}
