package credentials

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// maxFile is the maximum size of a config file in bytes.
const maxFile = 4 << 20

// FilesConfig configures [Files].
type FilesConfig struct {
	// Paths are the docker config files of the node; the first existing one is used. A
	// file named .dockercfg has the old format, any other that of config.json. DefaultPaths
	// returns the kubelet's paths. If empty, the keyring is empty.
	Paths []string

	// Logger receives one warning for each file with credential helpers, which are not
	// supported. If nil, it is discarded.
	Logger *slog.Logger
}

// Files is the keyring of the node's docker config files, whose credentials all pods may use.
// Safe for concurrent use.
type Files struct {
	paths []string
	log   *slog.Logger

	// mu guards warned.
	mu     sync.Mutex
	warned map[string]string // the helpers in the last warning, by file
}

// NewFiles returns the keyring. It returns an error if a path is empty. Files are read by each
// Lookup, so changes take effect with the next pull.
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

// DefaultPaths returns the kubelet's paths: config.json in its root directory, in its working
// directory, in .docker of the home directory and in /.docker, then .dockercfg in the root,
// working and home directories and in /. The files of an empty argument are omitted.
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

// Lookup implements Keyring. It uses the first file that exists and can be read, as the kubelet
// does. The error names earlier files that cannot be read, and invalid entries.
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
		return matching(withSource(cfg.entries, Source{File: path}), t), errors.Join(errs...)
	}
	return nil, errors.Join(errs...)
}

func readFile(path string) (*dockerConfig, error) {
	data, err := untrusted.ReadFollow(path, maxFile)
	if err != nil {
		return nil, plain(err)
	}
	if filepath.Base(path) == ".dockercfg" {
		return parseDockercfg(data)
	}
	return parseDockerConfigJSON(data)
}

// plain removes the path from an error, because the caller adds it.
func plain(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// warn logs the helpers of a file once, and again when they change.
func (f *Files) warn(path string, helpers []string) {
	text := strings.Join(helpers, " ")
	f.mu.Lock()
	last := f.warned[path]
	f.warned[path] = text
	f.mu.Unlock()
	if text != "" && text != last {
		f.log.Warn("Ignored credential helpers of docker config; use a credential provider plugin instead", "file", path, "helpers", text)
	}
}

// Format prints the paths for any verb.
func (f *Files) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "docker config files %s", strings.Join(f.paths, ", "))
}
