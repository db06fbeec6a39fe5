package credentials

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// maxFile bounds what is read of a config file, in bytes.
const maxFile = 4 << 20

// FilesConfig configures Files.
type FilesConfig struct {
	// Paths are the docker config files of the node, first choice first. A file
	// named .dockercfg is of the old format, any other is a config.json. No path
	// is looked at but these; DefaultPaths has the kubelet's. Empty: the keyring
	// has nothing.
	Paths []string

	// Logger hears once of each file with credential helpers, which are not
	// asked. Nil discards.
	Logger *slog.Logger
}

// Files is the keyring of the node's docker config files: every pod may use what
// they hold.
type Files struct {
	paths []string
	log   *slog.Logger

	// mu guards warned.
	mu     sync.Mutex
	warned map[string]string // what was said of the helpers of a file
}

// NewFiles returns the keyring. It reads no file: each Lookup reads anew, so a
// changed file counts from the next pull on.
func NewFiles(c FilesConfig) (*Files, error) {
	for i, p := range c.Paths {
		if p == "" {
			return nil, fmt.Errorf("credentials: FilesConfig.Paths[%d] is empty", i)
		}
	}
	f := &Files{paths: append([]string(nil), c.Paths...), log: c.Logger, warned: map[string]string{}}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	return f, nil
}

// DefaultPaths returns where a kubelet looks: config.json in its root directory,
// in its working directory, in .docker of the home directory and in /.docker,
// then .dockercfg in root, working and home directory and in /. An empty
// argument leaves its files out.
func DefaultPaths(rootDir, workDir, home string) []string {
	var paths []string
	add := func(dir string, file ...string) {
		if dir != "" {
			paths = append(paths, filepath.Join(append([]string{dir}, file...)...))
		}
	}
	top := string(filepath.Separator)
	add(rootDir, "config.json")
	add(workDir, "config.json")
	add(home, ".docker", "config.json")
	add(top, ".docker", "config.json")
	for _, dir := range []string{rootDir, workDir, home, top} {
		add(dir, ".dockercfg")
	}
	return paths
}

// Lookup implements Keyring. Only the first file that is there and can be read
// counts, as with the kubelet. The error names those before it that are there
// and cannot be read, and the entries of it that cannot.
func (f *Files) Lookup(_ context.Context, image string, _ *v1.Pod) ([]Credential, error) {
	t, err := parseImage(image)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	var errs []error
	for _, path := range f.paths {
		cfg, err := readFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("credentials: file %s: %w", path, err))
		}
		if cfg == nil {
			continue
		}
		f.warn(path, cfg.helpers)
		return pick(from(cfg.entries, Source{File: path}), t), errors.Join(errs...)
	}
	return nil, errors.Join(errs...)
}

func readFile(path string) (*dockerConfig, error) {
	// A path that is a pipe or device would hold the caller.
	info, err := os.Stat(path)
	if err != nil {
		return nil, plain(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, plain(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, plain(err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("is larger than %d bytes", maxFile)
	}
	if filepath.Base(path) == ".dockercfg" {
		return parseDockercfg(data)
	}
	return parseDockerConfigJSON(data)
}

// plain takes the path off an error that will be wrapped with it.
func plain(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// warn tells once, and again when they change, of helpers that are not asked.
func (f *Files) warn(path string, helpers []string) {
	text := strings.Join(helpers, " ")
	f.mu.Lock()
	said := f.warned[path]
	f.warned[path] = text
	f.mu.Unlock()
	if text != "" && text != said {
		f.log.Warn("credential helpers of a docker config are not asked; use a credential provider plugin", "file", path, "helpers", text)
	}
}

// Format prints the paths, whatever the verb.
func (f *Files) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "docker config files %s", strings.Join(f.paths, ", "))
}
