//go:build unix

package untrusted

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const nonBlocking = syscall.O_NONBLOCK

func openNoFollow(path string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW|nonBlocking, perm)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) { // the latter on FreeBSD
		return nil, notRegular(path, fs.ModeSymlink)
	}
	return f, err
}

func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|nonBlocking, 0)
}
