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

// maxFile is the maximum size of an env file in bytes (rule pe-9).
const maxFile = 64 << 10

// A File identifies an env file by the name of the pod's volume and the path in it.
type File struct{ Volume, Path string }

// ReadFile reads an env file for Inputs.Files. dir is the directory of the volume on the node.
//
// Containers write to the volume, so that the file is not trusted: symbolic links are not followed
// out of dir, and anything but a regular file of at most 64 KiB is an error. Opening a FIFO does
// not block. If the file does not exist, errors.Is(err, fs.ErrNotExist) is true.
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
	data, err := untrusted.Read(file, maxFile)
	if errors.Is(err, untrusted.ErrTooLarge) {
		return nil, fmt.Errorf("%s: %w", path, errFileTooLarge)
	}
	return data, err
}

var errFileTooLarge = fmt.Errorf("more than %d bytes", maxFile)

// fileKey returns the value of a key of an env file, and whether it exists.
func (in Inputs) fileKey(ref *v1.FileKeySelector) (value string, found bool, err error) {
	if err := checkFile(in.Pod, ref); err != nil {
		return "", false, fmt.Errorf("fileKeyRef: %w", err)
	}
	got, ok := in.Files[File{ref.VolumeName, ref.Path}]
	where := fmt.Sprintf("file %q of volume %q", ref.Path, ref.VolumeName)
	switch {
	case in.Files == nil:
		return "", false, fmt.Errorf("fileKeyRef: couldn't read %s, env files are not supported", where)
	case !ok:
		return "", false, fmt.Errorf("fileKeyRef: couldn't read %s: not in Inputs.Files", where)
	case notFound(got.Err):
		if isTrue(ref.Optional) {
			return "", false, nil
		}
		return "", false, fmt.Errorf("fileKeyRef: %s %w", where, errNotFound)
	case got.Err != nil:
		return "", false, fmt.Errorf("fileKeyRef: couldn't read %s: %w", where, got.Err)
	}
	vars, err := parseFile(got.Object)
	if err != nil {
		return "", false, fmt.Errorf("fileKeyRef: %s: %w", where, err)
	}
	value, found = vars[ref.Key]
	if !found && !isTrue(ref.Optional) {
		return "", false, fmt.Errorf("fileKeyRef: couldn't find key %q in %s", ref.Key, where)
	}
	return value, found, nil
}

// checkFile validates a reference. Env files must be in a volume of type emptyDir, whose content
// only the pod itself writes.
func checkFile(pod *v1.Pod, ref *v1.FileKeySelector) error {
	if !filepath.IsLocal(ref.Path) {
		return fmt.Errorf("path %q is not a local path in volume %q", ref.Path, ref.VolumeName)
	}
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == ref.VolumeName {
			if v.EmptyDir == nil {
				return fmt.Errorf("volume %q is not an emptyDir", ref.VolumeName)
			}
			return nil
		}
	}
	return fmt.Errorf("no volume %q in the pod", ref.VolumeName)
}

// parseFile parses an env file with entries of the form KEY='value' (rule pe-9). A value is the
// literal text between the quotes, which may contain line breaks. Spaces at the beginning of a
// line and around "=", empty lines, and lines that begin with "#" are ignored. If a key occurs
// more than once, the last value is used. Syntax that a shell would interpret is an error: a value
// without quotes or in double quotes, and anything but a comment after the closing quote.
func parseFile(data []byte) (map[string]string, error) {
	if len(data) > maxFile {
		return nil, errFileTooLarge
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
		key, value, after, err := parseAssignment(rest)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		vars[key] = value
		line += strings.Count(rest[:len(rest)-len(after)], "\n")
		rest = after
	}
}

// parseAssignment parses KEY='value' and the line break after it.
func parseAssignment(text string) (key, value, rest string, err error) {
	head, _ := cutLine(text)
	name, _, ok := strings.Cut(head, "=")
	if !ok {
		return "", "", "", errors.New("expected KEY='value'")
	}
	if key = strings.Trim(name, " \t"); !isVariableName(key) {
		return "", "", "", fmt.Errorf("invalid variable name %q", key)
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
		return "", "", "", fmt.Errorf("unexpected text after the value of %s", key)
	}
	if strings.ContainsRune(value, 0) {
		return "", "", "", fmt.Errorf("the value of %s contains a zero byte", key)
	}
	return key, value, rest, nil
}

// isVariableName reports whether s consists of printable ASCII characters other than "=" and space.
func isVariableName(s string) bool {
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
