package atomic

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
)

// A File is one file of a payload.
type File struct {
	Data []byte

	// Mode holds the permission bits, whatever the umask; other bits are left
	// out.
	Mode fs.FileMode

	// UID of the owner, 0 to 2147483647. Nil: the writer.
	UID *int64
}

// A Payload is a set of files by their paths, which have slashes and begin at the
// directory that is written to.
type Payload map[string]File

const (
	maxPath = 4096 // bytes
	maxName = 255  // bytes
)

// ErrPath is what errors about the paths of a payload are.
var ErrPath = errors.New("invalid path")

// Check returns nil if a file can be written to path: it is relative, at most 4096
// bytes long, none of its components is ".." or longer than 255 bytes, and the
// first doesn't begin with "..", which is how the writer's own names begin
// (vol-39). Errors are an [ErrPath], in the kubelet's words.
func Check(p string) error {
	switch {
	case p == "":
		return fmt.Errorf("%w: must not be empty: %q", ErrPath, p)
	case strings.HasPrefix(p, "/"):
		return fmt.Errorf("%w: must be relative path: %s", ErrPath, p)
	case len(p) > maxPath:
		return fmt.Errorf("%w: must be less than or equal to %d characters", ErrPath, maxPath)
	}
	components := strings.Split(p, "/")
	for _, c := range components {
		if c == ".." {
			return fmt.Errorf("%w: must not contain '..': %s", ErrPath, p)
		}
		if len(c) > maxName {
			return fmt.Errorf("%w: filenames must be less than or equal to %d characters", ErrPath, maxName)
		}
	}
	switch {
	case strings.HasPrefix(path.Clean(p), ".."):
		return fmt.Errorf("%w: must not start with '..': %s", ErrPath, p)
	case path.Clean(p) == ".":
		return fmt.Errorf("%w: must name a file: %q", ErrPath, p)
	case strings.Contains(p, "\x00"):
		return fmt.Errorf("%w: must not contain a zero byte: %q", ErrPath, p)
	}
	return nil
}

// Check returns nil if the payload can be written: each path passes [Check], no two of
// them are the same or need one name for a file and a directory, and each UID is in
// range.
func (p Payload) Check() error {
	_, err := p.clean()
	return err
}

// clean returns the payload by paths in their shortest form.
func (p Payload) clean() (Payload, error) {
	cleaned := make(Payload, len(p))
	from := make(map[string]string, len(p))
	for _, name := range slices.Sorted(maps.Keys(p)) { // so that errors are always the same
		if err := Check(name); err != nil {
			return nil, err
		}
		if uid := p[name].UID; uid != nil && (*uid < 0 || *uid > math.MaxInt32) {
			return nil, fmt.Errorf("user %d of file %q is out of range", *uid, name)
		}
		short := path.Clean(name)
		if other, ok := from[short]; ok {
			return nil, fmt.Errorf("%w: %q and %q are the same file", ErrPath, other, name)
		}
		cleaned[short], from[short] = p[name], name
	}
	for name := range cleaned {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if other, ok := from[dir]; ok {
				return nil, fmt.Errorf("%w: %q is a file, so that %q can't be in it", ErrPath, other, from[name])
			}
		}
	}
	return cleaned, nil
}

// names returns the visible names of a payload: the first component of each path,
// sorted.
func (p Payload) names() []string {
	set := make(map[string]bool, len(p))
	for name := range p {
		first, _, _ := strings.Cut(name, "/")
		set[first] = true
	}
	return slices.Sorted(maps.Keys(set))
}
