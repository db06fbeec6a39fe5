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

	// Mode contains the permission bits, regardless of the umask; other bits are ignored.
	Mode fs.FileMode

	// UID is the owner, 0 to 2147483647. If nil, it is the user of the process.
	UID *int64
}

// A Payload is a set of files by slash-separated paths relative to the directory.
type Payload map[string]File

const (
	maxPath = 4096 // bytes
	maxName = 255  // bytes
)

// ErrPath is wrapped by errors about the paths of a payload.
var ErrPath = errors.New("invalid path")

// Check returns nil if path is valid: it is relative and at most 4096 bytes long, no component is ".."
// or longer than 255 bytes, and the first does not begin with "..", which is reserved for [Write].
// Otherwise it returns an error that is [ErrPath], with the kubelet's text.
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

// Check returns nil if the payload can be written: each path passes [Check], no two paths are equal or
// use the same name for a file and a directory, and each UID is in range.
func (p Payload) Check() error {
	_, err := p.clean()
	return err
}

// clean returns the payload by cleaned paths.
func (p Payload) clean() (Payload, error) {
	cleaned := make(Payload, len(p))
	from := make(map[string]string, len(p))
	for _, name := range slices.Sorted(maps.Keys(p)) { // for deterministic errors
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
				return nil, fmt.Errorf("%w: %q is a file and cannot contain %q", ErrPath, other, from[name])
			}
		}
	}
	return cleaned, nil
}

// names returns the visible names of a payload, sorted: the first component of each path.
func (p Payload) names() []string {
	set := make(map[string]bool, len(p))
	for name := range p {
		first, _, _ := strings.Cut(name, "/")
		set[first] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// owner returns the owner of the link with one of these names: that of the first file behind it;
// nil if the owner of that is not set.
func (p Payload) owner(link string) *int64 {
	for _, name := range p.sorted() {
		if first, _, _ := strings.Cut(name, "/"); first == link {
			return p[name].UID
		}
	}
	return nil
}
