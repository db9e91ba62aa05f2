package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
)

// Stdin is the argument that stands for standard input.
const Stdin = "-"

// Source is one argument of a job: a file, a folder, or standard input.
type Source struct {
	arg  string
	path string // with symbolic links resolved; "" for standard input
	name string // what the ids of its documents begin with
	dir  bool
}

// UsageError says that arguments cannot be used.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

func usage(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Resolve checks the arguments. Every error is a *UsageError.
//
// A document's id is its slash path from the argument's own name: "docs" and "/srv/docs" both give docs/a.txt for the
// file a.txt in them, and so two arguments with one name are refused.
func Resolve(args []string) ([]Source, error) {
	sources := make([]Source, 0, len(args))
	names := map[string]string{}
	for _, arg := range args {
		s, err := resolve(arg)
		if err != nil {
			return nil, err
		}
		if other, taken := names[s.name]; taken {
			return nil, usage("%s and %s would give the same ids, which begin with %q", other, arg, s.name)
		}
		names[s.name] = arg
		sources = append(sources, s)
	}
	return sources, nil
}

func resolve(arg string) (Source, error) {
	if arg == Stdin {
		return Source{arg: arg, name: Stdin}, nil
	}
	abs, err := filepath.Abs(arg)
	if err != nil {
		return Source{}, usage("%s: %v", arg, err)
	}
	path, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return Source{}, usage("%s: %v", arg, cause(err))
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Source{}, usage("%s: %v", arg, cause(err))
	case !info.IsDir() && !info.Mode().IsRegular():
		return Source{}, usage("%s is neither a file nor a folder; to read a pipe give it as standard input: -", arg)
	}
	name := filepath.Base(abs)
	if name == string(filepath.Separator) {
		name = ""
	}
	return Source{arg: arg, path: path, name: name, dir: info.IsDir()}, nil
}

// Arg is the argument as it was given.
func (s Source) Arg() string { return s.arg }

// Dir reports whether the argument is a folder.
func (s Source) Dir() bool { return s.dir }

// Gone reports whether the file or folder is not there any more. Standard input is never gone.
func (s Source) Gone() bool {
	if s.arg == Stdin {
		return false
	}
	_, err := os.Lstat(s.path)
	return errors.Is(err, fs.ErrNotExist)
}

// ID of a file of the source, by its path.
func (s Source) ID(path string) string {
	rel, err := filepath.Rel(s.path, path)
	if err != nil || rel == "." {
		return s.name
	}
	return strings.TrimPrefix(s.name+"/"+filepath.ToSlash(rel), "/")
}

// File is a file that a walk has come to, or a path that could not be read.
type File struct {
	ID   string
	Path string // for opening and for people; "" for standard input
	Info fs.FileInfo
	Err  error
}

// Lines reports whether the file holds one document a line.
func (f File) Lines() bool {
	ext := strings.ToLower(filepath.Ext(f.Path))
	return ext == ".jsonl" || ext == ".ndjson"
}

// Skipped counts what walks have passed over.
type Skipped struct {
	Hidden  int // files and folders whose names begin with a dot
	Links   int // symbolic links within folders
	Special int // what is no file: sockets, devices, pipes
}

// Walk goes through the files of a source, folder by folder in the order of their names. Within a folder it passes over
// symbolic links, which could lead out of it or in circles, over what is no file, and over hidden names unless hidden
// is set; an argument itself is always taken. Paths that cannot be read are given with their error and do not end the
// walk; an error of each does.
func (s Source) Walk(ctx context.Context, hidden bool, skipped *Skipped, each func(File) error) error {
	err := filepath.WalkDir(s.path, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		file := File{ID: s.ID(path), Path: s.shown(path), Err: cause(err)}
		switch {
		case err != nil:
			return each(file)
		case path != s.path && !hidden && strings.HasPrefix(entry.Name(), "."):
			skipped.Hidden++
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case entry.Type()&fs.ModeSymlink != 0:
			skipped.Links++
			return nil
		case !entry.Type().IsRegular():
			skipped.Special++
			return nil
		}
		file.Info, err = entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone since the folder was read
		}
		file.Err = cause(err)
		if file.Err == nil {
			file.Err = checkID(file.ID)
		}
		return each(file)
	})
	return err
}

// shown is a path as the person who gave the argument knows it.
func (s Source) shown(path string) string {
	rel, err := filepath.Rel(s.path, path)
	if err != nil || rel == "." {
		return s.arg
	}
	return filepath.Join(s.arg, rel)
}

// checkID judges an id that a path gives, because a request could not even carry some of them.
func checkID(id string) error {
	switch {
	case !utf8.ValidString(id):
		return errors.New("the name is not UTF-8 and cannot be a document id")
	case strings.ContainsFunc(id, unicode.IsControl):
		return errors.New("the name has a control character and cannot be a document id")
	case len(id) > rag.MaxDocumentIDBytes:
		return fmt.Errorf("the path has %d bytes and cannot be a document id of at most %d", len(id), rag.MaxDocumentIDBytes)
	}
	return nil
}

// cause takes the path out of an error of the file system; who reports it has said the path already.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
