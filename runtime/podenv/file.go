package podenv

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/runtime"
)

// Of an env file the first maxFile bytes are read. A line has less than maxLine bytes
// (rule pe-9).
const (
	maxFile = 1 << 20
	maxLine = bufio.MaxScanTokenSize
)

// A File identifies an env file by the name of the pod's volume and the path in it.
type File struct{ Volume, Path string }

// ReadFile reads an env file for Inputs.Files. dir is the directory of the volume on the node.
//
// Containers write to the volume, so that the file is not trusted: symbolic links are not followed
// out of dir, anything but a regular file is an error, and no more than the first MiB is read.
// Opening a FIFO does not block. If the file does not exist, errors.Is(err, fs.ErrNotExist) is true.
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
	return io.ReadAll(io.LimitReader(file, maxFile))
}

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
	case IsNotFound(got.Err) && isTrue(ref.Optional):
		return "", false, nil
	case IsNotFound(got.Err):
		return "", false, fmt.Errorf("fileKeyRef: %s %w", where, errNotFound)
	case got.Err != nil:
		return "", false, fmt.Errorf("fileKeyRef: couldn't read %s: %w", where, got.Err)
	}
	value, found, err = valueInFile(got.Object, ref.Key, runtime.KubernetesMinor)
	switch {
	case err != nil:
		return "", false, fmt.Errorf("fileKeyRef: %s: %w", where, err)
	case found, isTrue(ref.Optional):
		return value, found, nil
	}
	return "", false, fmt.Errorf("fileKeyRef: couldn't find key %q in %s", ref.Key, where)
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

// valueInFile returns the value of a key in an env file with entries of the form KEY='value', and whether
// the file has the key (rule pe-9). A value is the literal text between the quotes, which may contain line breaks.
// Spaces at the beginning of a line, empty lines, and lines that begin with "#" are ignored. The first entry of the
// key counts, and lines after it are not read; lines before it must be valid. A space before "=" is an error. A space
// after it makes the value empty, as in a shell, whatever follows. Other syntax that a shell would interpret is an
// error: a value without quotes or in double quotes, and anything but a comment after the closing quote. From minor
// version 1.38 on, a comment must be separated from the quote, and nothing but a comment may follow a space after "=".
func valueInFile(data []byte, key string, minor int) (value string, found bool, err error) {
	lines := &lineReader{scanner: bufio.NewScanner(bytes.NewReader(data))}
	for lines.next() {
		text := strings.TrimLeft(lines.text, " \t")
		if text == "" || text[0] == '#' {
			continue
		}
		at := lines.number
		name, value, err := parseEntry(text, lines, minor >= 38)
		if err != nil {
			return "", false, fmt.Errorf("line %d: %w", at, err)
		}
		if name != key {
			continue
		}
		if strings.ContainsRune(value, 0) {
			return "", false, fmt.Errorf("line %d: the value of %s contains a zero byte", at, key)
		}
		return value, true, nil
	}
	if errors.Is(lines.scanner.Err(), bufio.ErrTooLong) {
		return "", false, fmt.Errorf("line %d: more than %d bytes", lines.number+1, maxLine-1)
	}
	if len(data) >= maxFile {
		return "", false, fmt.Errorf("%s is not in the first %d bytes", key, maxFile)
	}
	return "", false, nil
}

// A lineReader reads the lines of a file, without their line breaks.
type lineReader struct {
	scanner *bufio.Scanner
	text    string
	number  int
}

func (r *lineReader) next() bool {
	if !r.scanner.Scan() {
		return false
	}
	r.text = r.scanner.Text()
	r.number++
	return true
}

// parseEntry parses KEY='value', of which line is the first line. If strict, the text after a value
// is what a shell accepts.
func parseEntry(line string, lines *lineReader, strict bool) (key, value string, err error) {
	key, rest, ok := strings.Cut(line, "=")
	switch trimmed := strings.TrimRight(key, " \t"); {
	case !ok:
		return "", "", errors.New("expected KEY='value'")
	case trimmed == "":
		return "", "", errors.New("no variable name")
	case trimmed != key:
		return "", "", fmt.Errorf("space between %s and =", trimmed)
	case strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "\t"):
		if text := strings.TrimLeft(rest, " \t"); strict && text != "" && text[0] != '#' {
			return "", "", fmt.Errorf("unexpected text after the space that follows %s=", key)
		}
		return key, "", nil
	}
	rest, ok = strings.CutPrefix(rest, "'")
	if !ok {
		return "", "", fmt.Errorf("the value of %s is not in single quotes", key)
	}
	var b strings.Builder
	for {
		body, tail, closed := strings.Cut(rest, "'")
		b.WriteString(body)
		if closed {
			text := strings.TrimLeft(tail, " \t")
			if text != "" && (text[0] != '#' || strict && text == tail) {
				return "", "", fmt.Errorf("unexpected text after the value of %s", key)
			}
			return key, b.String(), nil
		}
		b.WriteByte('\n')
		if !lines.next() {
			return "", "", fmt.Errorf("the value of %s has no closing quote", key)
		}
		rest = lines.text
	}
}
