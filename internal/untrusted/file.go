package untrusted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

var (
	// ErrTooLarge reports that a file or a directory exceeds the limit of the
	// call.
	ErrTooLarge = errors.New("too large")

	// ErrNotRegular reports that a path leads to a directory, link, FIFO,
	// socket or device.
	ErrNotRegular = errors.New("not a regular file")
)

// Open opens a regular file for reading. The caller must close it. It returns
// ErrNotRegular if path is not a regular file, and fs.ErrNotExist if it does not exist.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile for regular files. It returns ErrNotRegular if path is not a
// regular file; links are not followed, also when creating a file.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return open(path, os.Lstat, func() (*os.File, error) { return openNoFollow(path, flag, perm) })
}

// OpenFollow is Open for a path whose last element may be a link, such as a log
// that a runtime keeps elsewhere or a file of the node's configuration. A user that
// can write the link chooses the file that is read.
func OpenFollow(path string) (*os.File, error) {
	return open(path, os.Stat, func() (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|nonBlocking, 0) })
}

// OpenIn opens a regular file for reading by its path below root. Links are
// followed as long as they stay below root.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return open(name, root.Stat, func() (*os.File, error) { return root.OpenFile(name, os.O_RDONLY|nonBlocking, 0) })
}

// open opens what stat finds at path. The type is checked before, because
// opening a device can have effects, and again afterwards, because the file may
// have been exchanged.
func open(path string, stat func(string) (fs.FileInfo, error), open func() (*os.File, error)) (*os.File, error) {
	if info, err := stat(path); err == nil {
		if err := regular(path, info); err != nil {
			return nil, err
		}
	}
	f, err := open() // of a file that does not exist, an error or a new one
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func regular(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return notRegular(path, info.Mode())
}

func notRegular(path string, mode fs.FileMode) error {
	kind := "special file"
	switch mode & fs.ModeType {
	case fs.ModeDir:
		kind = "directory"
	case fs.ModeSymlink:
		kind = "symbolic link"
	case fs.ModeNamedPipe:
		kind = "named pipe"
	case fs.ModeSocket:
		kind = "socket"
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		kind = "device"
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w (%s)", ErrNotRegular, kind)}
}

// ReadFile returns the content of a regular file of at most limit bytes. It
// returns ErrTooLarge if the file has more, ErrNotRegular if the path leads to
// something else, and fs.ErrNotExist if there is no file.
func ReadFile(path string, limit int64) ([]byte, error) { return read(Open, path, limit) }

// ReadFollow is ReadFile for a path whose last element may be a link; see OpenFollow.
func ReadFollow(path string, limit int64) ([]byte, error) { return read(OpenFollow, path, limit) }

func read(open func(path string) (*os.File, error), path string, limit int64) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, limit)
}

// Read returns the rest of an open file, at most limit bytes. It returns
// ErrTooLarge if the file has more; a regular file whose size exceeds the limit
// is not read.
func Read(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	offset, _ := f.Seek(0, io.SeekCurrent) // of a pipe, 0
	if info.Mode().IsRegular() && info.Size()-offset > limit {
		return nil, tooLarge(f, limit)
	}
	// The file may grow while it is read, and one in /proc has the size 0.
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, tooLarge(f, limit)
	}
	return data, nil
}

func tooLarge(f *os.File, limit int64) error {
	return &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)}
}

// Tail returns the last n bytes of a regular file, or all of it if it has fewer.
func Tail(f *os.File, n int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(info.Size()-n, 0), n))
}

// Equal reports whether a regular file has exactly the given content. A file of
// another size is not read. It returns ErrNotRegular if the path leads to
// something else, and fs.ErrNotExist if there is no file.
func Equal(path string, content []byte) (bool, error) {
	data, err := ReadFile(path, int64(len(content)))
	if errors.Is(err, ErrTooLarge) {
		return false, nil
	}
	return err == nil && bytes.Equal(data, content), err
}
