package podenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// MaxFile is how many bytes an env file may have (pe-9).
const MaxFile = 64 << 10

// A File is an env file: a path in one of the pod's volumes.
type File struct{ Volume, Path string }

// ReadFile reads an env file for Facts.Files; dir is where its volume is on this
// machine. Containers write those volumes: a link does not lead out of it, what
// is no regular file is refused and never waited for, and so is a file of more
// than MaxFile bytes. The error of a file that does not exist Is fs.ErrNotExist.
func ReadFile(dir, path string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := untrusted.OpenIn(root, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := untrusted.Read(file, MaxFile)
	if errors.Is(err, untrusted.ErrTooLarge) {
		return nil, fmt.Errorf("%s: %w", path, errLarge)
	}
	return data, err
}

var errLarge = fmt.Errorf("more than %d bytes", MaxFile)

// fileKey returns the value of a key of an env file, and whether there is one
// (pe-9).
func (f Facts) fileKey(ref *v1.FileKeySelector) (value string, found bool, err error) {
	if err := checkFile(f.Pod, ref); err != nil {
		return "", false, fmt.Errorf("fileKeyRef: %w", err)
	}
	got, known := f.Files[File{ref.VolumeName, ref.Path}]
	where := fmt.Sprintf("file %q of volume %q", ref.Path, ref.VolumeName)
	switch {
	case f.Files == nil:
		return "", false, fmt.Errorf("fileKeyRef: couldn't read %s, nothing here reads env files", where)
	case !known:
		return "", false, fmt.Errorf("fileKeyRef: couldn't read %s: nobody did", where)
	case notFound(got.Err):
		if is(ref.Optional) {
			return "", false, nil
		}
		return "", false, fmt.Errorf("fileKeyRef: %s %w", where, ErrNotFound)
	case got.Err != nil:
		return "", false, fmt.Errorf("fileKeyRef: couldn't read %s: %w", where, got.Err)
	}
	vars, err := ParseFile(got.Object)
	if err != nil {
		return "", false, fmt.Errorf("fileKeyRef: %s: %w", where, err)
	}
	value, found = vars[ref.Key]
	if !found && !is(ref.Optional) {
		return "", false, fmt.Errorf("fileKeyRef: couldn't find key %q in %s", ref.Key, where)
	}
	return value, found, nil
}

// checkFile tells what is wrong with a reference, whatever the file has. Only
// volumes of type emptyDir can have env files: their content is the pod's own.
func checkFile(pod *v1.Pod, ref *v1.FileKeySelector) error {
	if !filepath.IsLocal(ref.Path) {
		return fmt.Errorf("path %q leads out of volume %q", ref.Path, ref.VolumeName)
	}
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == ref.VolumeName {
			if v.EmptyDir == nil {
				return fmt.Errorf("volume %q is not an emptyDir", ref.VolumeName)
			}
			return nil
		}
	}
	return fmt.Errorf("the pod has no volume %q", ref.VolumeName)
}

// ParseFile reads an env file: KEY='value', the value being all between the
// quotes, line breaks included, and nothing in it meaning anything else. Spaces
// at the beginning of a line and around the "=", empty lines, and lines that
// begin with "#" don't count; of a key that comes twice the last has the value
// (pe-9). What a shell would read otherwise is an error: values without quotes
// or in double ones, and anything but a comment after the closing quote.
func ParseFile(data []byte) (map[string]string, error) {
	if len(data) > MaxFile {
		return nil, errLarge
	}
	vars := map[string]string{}
	rest := string(data)
	for line := 1; ; {
		trimmed := strings.TrimLeft(rest, " \t\r\n")
		line += strings.Count(rest[:len(rest)-len(trimmed)], "\n")
		if rest = trimmed; rest == "" {
			return vars, nil
		}
		if rest[0] == '#' {
			_, rest = cutLine(rest)
			line++
			continue
		}
		key, value, after, err := assignment(rest)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		vars[key] = value
		line += strings.Count(rest[:len(rest)-len(after)], "\n")
		rest = after
	}
}

// assignment reads KEY='value' and the line break after it.
func assignment(text string) (key, value, rest string, err error) {
	head, _ := cutLine(text)
	name, _, ok := strings.Cut(head, "=")
	if !ok {
		return "", "", "", errors.New("no KEY='value'")
	}
	if key = strings.Trim(name, " \t"); !printable(key) {
		return "", "", "", fmt.Errorf("%q is no name of a variable", key)
	}
	quoted := strings.TrimLeft(text[len(name)+1:], " \t")
	body, ok := strings.CutPrefix(quoted, "'")
	if !ok {
		return "", "", "", fmt.Errorf("the value of %s is not in single quotes", key)
	}
	if value, rest, ok = strings.Cut(body, "'"); !ok {
		return "", "", "", fmt.Errorf("the value of %s has no closing quote", key)
	}
	tail, rest := cutLine(rest)
	if bare := strings.TrimSpace(tail); bare != "" && (bare[0] != '#' || tail[0] == '#') {
		return "", "", "", fmt.Errorf("something follows the value of %s", key)
	}
	if strings.ContainsRune(value, 0) {
		return "", "", "", fmt.Errorf("the value of %s has a zero byte", key)
	}
	return key, value, rest, nil
}

// printable reports whether s can name a variable: printable ASCII characters,
// none of them "=" or a space.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '=' {
			return false
		}
	}
	return s != ""
}

func cutLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return line, rest
}
