package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/broadcast"
	"github.com/kubeparts/kubeparts/internal/dirlock"
)

// Name is the name of this runtime, and the scheme of its container IDs.
const Name = "process"

// The result of Version.
const (
	runtimeVersion = "1.0.0"
	criVersion     = "v1"
)

// Config configures a Runtime.
type Config struct {
	// Dir is the state directory. Required. Open creates it. It must be on a file
	// system that supports FIFOs; network file systems may not. It must not be
	// cleared while containers run: they would be lost and could not be stopped.
	// Only one agent can use it at a time.
	Dir string

	// Supervisor is the command line of the supervisor; its program must call
	// Supervise. If empty, it is the running program, on Linux also after its
	// file was replaced or removed.
	Supervisor []string

	// StartTimeout is the time limit for a supervisor to start its process, and
	// so for StartContainer. Zero means 30 s. With a short one, starts fail on a
	// loaded machine.
	StartTimeout time.Duration

	// Logger receives log messages. If nil, they are discarded.
	Logger *slog.Logger

	// Hooks are called on starts, exits and corrupt state files.
	Hooks Hooks
}

// A Runtime runs containers as plain processes of this host. It implements the
// CRI interfaces RuntimeService and ImageManagerService. Its errors have gRPC
// status codes, like those of a CRI client. Safe for concurrent use.
type Runtime struct {
	dir        stateDir
	supervisor []string // the executable, then argv
	timeout    time.Duration
	log        *slog.Logger
	hooks      Hooks
	lock       *dirlock.Lock

	// ended is closed by Close.
	ended chan struct{}

	// mu guards the fields below and sandboxRecord.Ready. It is acquired before a
	// container's mu, and not held while blocking.
	mu         sync.Mutex
	closed     bool
	sandboxes  map[string]*sandbox
	containers map[string]*container
	corrupt    []string // state files that Open could not read
	events     broadcast.Sender[queuedEvent]
}

var (
	_ internalapi.RuntimeService      = (*Runtime)(nil)
	_ internalapi.ImageManagerService = (*Runtime)(nil)
)

// Open opens the state directory and loads the sandboxes and containers of an
// earlier Runtime. Close releases the directory. Open starts no goroutine.
//
// It returns an error if another agent uses the directory, if the directory has
// another version or other files, if this program cannot be executed again, and
// on systems other than Linux and macOS. A corrupt record is not an error: it is
// logged, and the other records are loaded.
func Open(cfg Config) (*Runtime, error) {
	if cfg.Dir == "" {
		return nil, errors.New("process: Config.Dir is empty")
	}
	if cfg.StartTimeout < 0 {
		return nil, fmt.Errorf("process: Config.StartTimeout is negative: %v", cfg.StartTimeout)
	}
	if job, ok := os.LookupEnv(envSupervise); ok {
		// Otherwise a program without Supervise would start itself recursively.
		return nil, fmt.Errorf("process: this process was started as a supervisor (%s=%s), but the program does not call Supervise: %s", envSupervise, job, callSupervise)
	}
	supervisor, err := supervisorCommand(cfg.Supervisor)
	if err != nil {
		return nil, fmt.Errorf("process: supervisor: %w", err)
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("process: Config.Dir: %w", err)
	}
	r := &Runtime{
		dir: stateDir(dir), supervisor: supervisor, timeout: cfg.StartTimeout, log: cfg.Logger, hooks: cfg.Hooks,
		ended:     make(chan struct{}),
		sandboxes: map[string]*sandbox{}, containers: map[string]*container{},
	}
	if r.timeout == 0 {
		r.timeout = 30 * time.Second
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("process: state directory: %w", err)
	}
	if r.lock, err = dirlock.Take(r.dir.path("lock")); err != nil {
		return nil, fmt.Errorf("process: lock state directory %s: %w", dir, err)
	}
	err = r.prepare(context.Background())
	if err == nil {
		err = r.load()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("process: %w", err), r.lock.Release())
	}
	return r, nil
}

// supervisorCommand returns the executable followed by argv.
func supervisorCommand(configured []string) ([]string, error) {
	if len(configured) > 0 {
		file, err := exec.LookPath(configured[0])
		if err == nil {
			file, err = filepath.Abs(file)
		}
		return append([]string{file}, configured...), err
	}
	file, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argv := []string{file, "kubeparts-supervisor"}
	if goruntime.GOOS == "linux" {
		// The link refers to the running program even if its file was replaced.
		if _, err := os.Stat("/proc/self/exe"); err == nil {
			argv[0] = "/proc/self/exe"
			return argv, nil
		}
	}
	_, err = os.Stat(file)
	return argv, err
}

// load reads all records. Open calls it before the Runtime is used.
func (r *Runtime) load() error {
	names := func(dir string) ([]string, error) {
		entries, err := os.ReadDir(dir)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, err
	}
	ids, err := names(r.dir.path("sandboxes"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		rec, err := readRecord[sandboxRecord](filepath.Join(r.dir.sandbox(id), "sandbox.json"), id)
		if err != nil {
			if !isCorrupt(err) && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			r.unreadable(err)
			continue
		}
		r.sandboxes[id] = &sandbox{rec: rec}
	}
	if ids, err = names(r.dir.path("containers")); err != nil {
		return err
	}
	for _, id := range ids {
		rec, err := readRecord[containerRecord](r.dir.containerFile(id), id)
		if err != nil {
			// The error may be temporary: the container must not be dropped.
			if !isCorrupt(err) && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			r.unreadable(err)
			continue
		}
		c := &container{rec: rec}
		r.containers[id] = c
		if _, ok := r.sandboxes[rec.SandboxID]; !ok {
			// The record of its sandbox is missing or corrupt. The container is
			// listed nevertheless, so that it can be stopped.
			r.log.Warn("Loaded a container without a sandbox; it can only be stopped and removed", "containerID", id, "sandboxID", rec.SandboxID)
		}
	}
	if ids, err = names(r.dir.path("exits")); err != nil {
		return err
	}
	for _, name := range ids {
		id := strings.TrimSuffix(name, ".json")
		if _, err := os.Stat(r.dir.container(id)); errors.Is(err, fs.ErrNotExist) {
			// A removal was interrupted between its two steps.
			if err := os.Remove(r.dir.exit(id)); err != nil {
				return err
			}
		}
	}
	for _, c := range r.containers {
		_, _, problems := r.inspect(c) // earlier exits are not reported to Hooks
		for _, err := range problems {
			r.unreadable(err)
		}
		c.adopt()
	}
	return nil
}

// unreadable records and reports a corrupt state file.
func (r *Runtime) unreadable(err error) {
	path := r.dir.path()
	if e, ok := errors.AsType[*corruptError](err); ok {
		path = e.Path
	} else if e, ok := errors.AsType[*fs.PathError](err); ok {
		path = e.Path
	}
	r.corrupt = append(r.corrupt, err.Error())
	r.reportCorrupt(path, err)
}

func (r *Runtime) reportCorrupt(path string, err error) {
	r.log.Warn("Ignoring corrupt state file", "path", path, "err", err)
}

// Close releases the state directory. Containers continue to run; the next
// Runtime on the directory finds them. Event streams end; other calls in progress
// are not waited for and may fail. A second Close does nothing.
func (r *Runtime) Close(context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	close(r.ended)
	containers := r.containers
	r.containers = nil
	r.mu.Unlock()
	for _, c := range containers {
		c.letGo(r.dir.alive(c.rec.ID))
	}
	if err := r.lock.Release(); err != nil {
		return fmt.Errorf("process: unlock state directory: %w", err)
	}
	return nil
}

// errClosed is returned after Close, with the code of an unreachable runtime.
var errClosed = status.Error(codes.Unavailable, "process: the runtime is closed")

func (r *Runtime) open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	return nil
}

// Version returns the runtime name "process" and the CRI version v1.
func (r *Runtime) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version: "0.1.0", RuntimeName: Name, RuntimeVersion: runtimeVersion, RuntimeApiVersion: criVersion,
	}, nil
}

// Status reports that the runtime and the network are ready. With verbose, the
// info "corrupt" lists the corrupt records that Open found, one per line.
func (r *Runtime) Status(_ context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	resp := &runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
			{Type: runtimeapi.RuntimeReady, Status: true},
			{Type: runtimeapi.NetworkReady, Status: true},
		}},
		Features: &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}
	if verbose {
		resp.Info = map[string]string{"dir": string(r.dir), "isolation": "none", "corrupt": strings.Join(r.corrupt, "\n")}
	}
	return resp, nil
}
