package volume

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxDepth is how many directories are held open at a time. What lies deeper is
// moved up before it is gone into: whoever nests directories without end must
// not exhaust the agent's descriptors.
const maxDepth = 64

// A remover removes one tree, on one mount.
type remover struct {
	ctx  context.Context //nolint:containedctx // of one call
	root int             // the tree's top, where deep directories are moved to
	open func(parent int, name string) (int, error)
}

// removeTree removes dir. It opens each directory from the one above, so that no
// link and no mount, also none that comes while it is at work, leads it out.
func removeTree(ctx context.Context, dir string) error {
	parent, err := unix.Open(filepath.Dir(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	r := &remover{ctx: ctx, root: -1, open: openSameMount}
	return r.remove(parent, filepath.Base(dir), 0)
}

// remove removes one entry of a directory.
func (r *remover) remove(parent int, name string, depth int) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	// Files are the most of it, and a directory says EISDIR (or EPERM).
	err := unix.Unlinkat(parent, name, 0)
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%s: %w", name, ErrMounted)
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: %w", name, err)
	}
	fd, openErr := r.open(parent, name)
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

// empty removes what is in a directory. It reads the names again until there are
// none: an entry may have been moved up into it.
func (r *remover) empty(fd int, name string, depth int) error {
	for {
		names, err := namesIn(fd)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if depth >= maxDepth {
				// A name that whoever filled the tree cannot foresee.
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

// namesIn lists a directory that is open.
func namesIn(fd int) ([]string, error) {
	again, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(again), "directory")
	defer f.Close()
	return f.Readdirnames(-1)
}

// openSameMount opens a directory, unless it is a link, or something is mounted
// on it: that is ErrMounted. One that may not be read is made readable: it is
// to go, and its owner may be who asks.
func openSameMount(parent int, name string) (int, error) {
	how := &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	}
	fd, err := unix.Openat2(parent, name, how)
	if errors.Is(err, unix.EACCES) {
		chmodNoFollow(parent, name, 0o700)
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
