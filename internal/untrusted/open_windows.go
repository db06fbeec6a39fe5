package untrusted

import (
	"io/fs"
	"os"
	"syscall"
)

const nonBlocking = 0 // Windows has no FIFOs in directories

// openNoFollow opens path. Windows has no flag that rejects links, so the opened file is
// compared with the status of the path afterwards.
func openNoFollow(path string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	return notByLink(f, path)
}

func openDir(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.IsDir() {
		_ = f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	return notByLink(f, path)
}

func notByLink(f *os.File, path string) (*os.File, error) {
	opened, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Lstat(path); err == nil && !os.SameFile(opened, there) {
			err = notRegular(path, there.Mode())
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
