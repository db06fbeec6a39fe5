package claim

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/kubeparts/kubeparts/internal/dirlock"
)

// ErrInUse is in the chain of the error of [Take] if another process uses a resource.
var ErrInUse = errors.New("in use")

// A Config names the resources that an agent uses exclusively.
type Config struct {
	// Root is the agent's root directory, which Take creates if necessary. Required.
	Root string

	// RuntimeEndpoint is the endpoint of the CRI runtime, "unix:///PATH". Empty, or
	// not a unix socket: no runtime is shared.
	RuntimeEndpoint string

	// PodLogsDir is the directory of the logs of pods. Empty: none is shared.
	PodLogsDir string

	// CgroupRoot is the parent of the cgroups of pods, "/kubeparts". Empty: the agent
	// creates none.
	CgroupRoot string

	// Proc is the directory of processes. Empty: /proc.
	Proc string

	// Logger is used if it cannot be determined whether a resource is in use. If
	// nil, logs are discarded.
	Logger *slog.Logger
}

// Take reserves the resources until release is called or the process ends. It returns an
// error that wraps [ErrInUse] if an agent or a kubelet uses one of them, and an error if
// the root directory cannot be created.
func Take(cfg Config) (release func(), err error) {
	if cfg.Root == "" {
		return nil, errors.New("claim: Config.Root is empty")
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	mine := cfg.resources()
	if err := checkKubelets(mine, cmp.Or(cfg.Proc, "/proc")); err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	if err := os.MkdirAll(cfg.Root, 0o711); err != nil {
		return nil, fmt.Errorf("claim: create the root directory: %w", err)
	}
	root, err := dirlock.Take(filepath.Join(cfg.Root, "agent.lock"))
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, fmt.Errorf("claim: %s %s: %w", rootDirectory, cfg.Root, inUse(err))
	}
	locks := []*dirlock.Lock{root}
	if socket := mine[runtimeSocket]; socket != "" && err == nil {
		// Agents with different roots would still have the same pods.
		lock, err := dirlock.Take(socket + ".kubeparts-agent.lock")
		switch {
		case errors.Is(err, dirlock.ErrHeld):
			_ = root.Release()
			return nil, fmt.Errorf("claim: %s %s: %w", runtimeSocket, socket, inUse(err))
		case err != nil:
			cfg.Logger.Debug("Failed to lock the runtime's socket; other agents that use it are not detected", "path", socket, "err", err)
		default:
			locks = append(locks, lock)
		}
	}
	return sync.OnceFunc(func() {
		for _, l := range locks {
			_ = l.Release() // the kernel releases it when the process ends
		}
	}), nil
}

// inUse marks the error of a lock that another process holds.
func inUse(err error) error {
	if errors.Is(err, dirlock.ErrHeld) {
		return fmt.Errorf("%w: %w", ErrInUse, err)
	}
	return err
}

// Kinds of resources.
const (
	rootDirectory = "root directory"
	podLogs       = "directory of pod logs"
	runtimeSocket = "runtime"
	cgroupRoot    = "root of pod cgroups"
)

// resources are what an agent or a kubelet uses exclusively, by kind. Paths are without
// symbolic links.
type resources map[string]string

func (cfg *Config) resources() resources {
	r := resources{rootDirectory: resolved(cfg.Root)}
	if cfg.PodLogsDir != "" {
		r[podLogs] = resolved(cfg.PodLogsDir)
	}
	if socket := socketOf(cfg.RuntimeEndpoint); socket != "" {
		r[runtimeSocket] = socket
	}
	if cfg.CgroupRoot != "" {
		r[cgroupRoot] = filepath.Join("/", cfg.CgroupRoot)
	}
	return r
}

// socketOf returns the path of a runtime's socket; "" if the endpoint is not a unix socket.
func socketOf(endpoint string) string {
	path, ok := strings.CutPrefix(endpoint, "unix://")
	if !ok {
		return ""
	}
	return resolved(path)
}

// resolved returns a path without symbolic links. If the path does not exist, only its
// directory is resolved.
func resolved(path string) string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return filepath.Clean(path)
	}
	path = filepath.Join(dir, filepath.Base(path))
	if whole, err := filepath.EvalSymlinks(path); err == nil {
		return whole
	}
	return path
}
