package untrusted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// maxDepth is the number of directories that are open at a time. Directories
	// below are moved up before they are entered, so that a deep tree does not
	// exhaust the agent's descriptors.
	maxDepth = 64

	// maxNames is the number of names of a directory that are in memory at a
	// time.
	maxNames = 1024
)

// A remover removes one tree, on one mount.
type remover struct {
	ctx  context.Context //nolint:containedctx // of one call
	root int             // the tree's top, where deep directories are moved to
}

// removeTree opens each directory from its parent, so that no link and no mount
// leads out of the tree.
func removeTree(ctx context.Context, dir string) error {
	parent, err := unix.Open(filepath.Dir(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	r := &remover{ctx: ctx, root: -1}
	return r.remove(parent, filepath.Base(dir), 0)
}

// remove removes one entry of a directory.
func (r *remover) remove(parent int, name string, depth int) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	// Most entries are files; for a directory the error is EISDIR (or EPERM).
	err := unix.Unlinkat(parent, name, 0)
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%s: %w", name, ErrMounted)
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: %w", name, err)
	}
	fd, openErr := openSameMount(parent, name)
	switch {
	case errors.Is(openErr, unix.ENOENT):
		return nil
	case errors.Is(openErr, unix.ENOTDIR) || errors.Is(openErr, unix.ELOOP):
		return fmt.Errorf("%s: %w", name, err) // a file that may not be removed
	case openErr != nil:
		return fmt.Errorf("%s: %w", name, openErr)
	}
	if r.root < 0 {
		r.root = fd
	}
	err = r.empty(fd, name, depth)
	unix.Close(fd)
	if err != nil {
		return fmt.Errorf("%s/%w", name, err)
	}
	switch err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%s: %w", name, ErrMounted)
	default:
		return fmt.Errorf("%s: %w", name, err)
	}
}

// empty removes the entries of a directory. It reads the names again until there
// are none: an entry may have been moved up into it.
func (r *remover) empty(fd int, name string, depth int) error {
	for {
		names, err := someNames(fd)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if depth >= maxDepth {
				// A random name, which the tree cannot contain already.
				up := ".removed-" + strconv.FormatUint(rand.Uint64(), 36)
				if unix.Renameat2(fd, name, r.root, up, unix.RENAME_NOREPLACE) == nil {
					continue
				}
			}
			if err := r.remove(fd, name, depth+1); err != nil {
				return err
			}
		}
	}
}

// someNames returns names of an open directory, at most maxNames; none if it is
// empty.
func someNames(fd int) ([]string, error) {
	again, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(again), "directory")
	defer f.Close()
	names, err := f.Readdirnames(maxNames)
	if len(names) > 0 || errors.Is(err, io.EOF) {
		return names, nil
	}
	return nil, err
}

// openSameMount opens a directory. It returns ErrMounted if something is mounted
// on it, and ELOOP or ENOTDIR for a link. A directory that may not be read is
// made readable first: an unprivileged agent may own it.
func openSameMount(parent int, name string) (int, error) {
	how := &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	}
	fd, err := unix.Openat2(parent, name, how)
	if errors.Is(err, unix.EACCES) {
		ChmodAt(parent, name, 0o700)
		fd, err = unix.Openat2(parent, name, how)
	}
	switch {
	case errors.Is(err, unix.EXDEV):
		return -1, ErrMounted
	case errors.Is(err, unix.ENOSYS):
		return openSameMountByID(parent, name)
	}
	return fd, err
}

// openSameMountByID is openSameMount for kernels before 5.6.
func openSameMountByID(parent int, name string) (int, error) {
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	above, err := mountID(parent)
	if err == nil {
		var id uint64
		if id, err = mountID(fd); err == nil && id != above {
			err = ErrMounted
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
