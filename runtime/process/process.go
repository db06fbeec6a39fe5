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

	"github.com/kubeparts/kubeparts/internal/dirlock"
)

// Name is what this runtime calls itself; container IDs begin with it.
const Name = "process"

// What Version answers with.
const (
	runtimeVersion = "1.0.0"
	criVersion     = "v1"
)

// Config says where a Runtime keeps what it knows.
type Config struct {
	// Dir is the state directory; required. New makes it. It must be on a
	// file system with FIFOs, which network ones may not be, and should not
	// be cleared while processes run: what cannot be found cannot be stopped.
	// One agent uses it at a time.
	Dir string

	// Supervisor is the command line that becomes a supervisor; the program
	// must call Supervise. Default: the running program, also after its file
	// was replaced or removed (on Linux).
	Supervisor []string

	// StartTimeout is how long a supervisor may take to come up and start its
	// process, and so how long StartContainer can take at most. Default 30 s;
	// a short one fails starts on a loaded machine.
	StartTimeout time.Duration

	// Logger; nil discards.
	Logger *slog.Logger

	Hooks Hooks
}

// A Runtime runs containers as plain processes of this host. It implements
// the CRI interfaces RuntimeService and ImageManagerService; its errors carry
// gRPC status codes, as those of a CRI runtime behind a socket do.
//
// All methods may be called from many goroutines at once.
type Runtime struct {
	dir        stateDir
	supervisor []string // the executable, then argv
	timeout    time.Duration
	log        *slog.Logger
	hooks      Hooks
	lock       *dirlock.Lock

	// ended is closed by Close.
	ended chan struct{}

	// mu guards the fields below and what a sandbox record says of its state.
	// It is taken before a container's own lock and never while waiting.
	mu         sync.Mutex
	closed     bool
	sandboxes  map[string]*sandbox
	containers map[string]*container
	corrupt    []string // state files that New could not read
	watchers   map[*watcher]struct{}
}

var (
	_ internalapi.RuntimeService      = (*Runtime)(nil)
	_ internalapi.ImageManagerService = (*Runtime)(nil)
)

// New opens the state directory and finds again what an earlier Runtime left
// running in it. Close releases it. New starts no goroutine; it differs from
// the constructors of other packages in that it does touch files, as there is
// no Run in the CRI that could.
//
// It fails if another agent uses the directory, if the directory is of another
// version or not one of this package, if this program cannot be executed
// again, and on systems other than Linux and macOS. A single record that
// cannot be read is no failure: it is logged and reported to Hooks.Corrupt,
// and the others are unharmed.
func New(cfg Config) (*Runtime, error) {
	if cfg.Dir == "" {
		return nil, errors.New("process: Config.Dir is empty")
	}
	if cfg.StartTimeout < 0 {
		return nil, fmt.Errorf("process: Config.StartTimeout is negative: %v", cfg.StartTimeout)
	}
	if job, ok := os.LookupEnv(envSupervise); ok {
		// Without this a program that forgot would start itself over and over.
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
		sandboxes: map[string]*sandbox{}, containers: map[string]*container{}, watchers: map[*watcher]struct{}{},
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
	err = r.dir.prepare()
	if err == nil {
		err = r.load()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("process: %w", err), r.lock.Release())
	}
	return r, nil
}

// supervisorCommand returns what to execute, and its argv.
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
		// The link is the program itself, not what has its name by now.
		if _, err := os.Stat("/proc/self/exe"); err == nil {
			argv[0] = "/proc/self/exe"
			return argv, nil
		}
	}
	_, err = os.Stat(file)
	return argv, err
}

// load reads every record. It runs in New, before anybody else can.
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
			// What may be fine at the next try must not be left out now.
			if !isCorrupt(err) && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			r.unreadable(err)
			continue
		}
		c := &container{rec: rec}
		r.containers[id] = c
		if _, ok := r.sandboxes[rec.SandboxID]; !ok {
			// Its sandbox's record is gone or unreadable. The container is
			// listed still: nothing may run that is in no list.
			r.log.Warn("container without a sandbox", "container", id, "sandbox", rec.SandboxID)
		}
	}
	if ids, err = names(r.dir.path("exits")); err != nil {
		return err
	}
	for _, name := range ids {
		id := strings.TrimSuffix(name, ".json")
		if _, err := os.Stat(r.dir.container(id)); errors.Is(err, fs.ErrNotExist) {
			// A removal was cut short between its two steps.
			if err := os.Remove(r.dir.exit(id)); err != nil {
				return err
			}
		}
	}
	for _, c := range r.containers {
		_, _, problems := r.inspect(c) // what happened before is not told to Hooks
		for _, err := range problems {
			r.unreadable(err)
		}
		c.adopt()
	}
	return nil
}

// unreadable notes what New could not read.
func (r *Runtime) unreadable(err error) {
	path := r.dir.path()
	if e, ok := errors.AsType[*CorruptError](err); ok {
		path = e.Path
	} else if e, ok := errors.AsType[*fs.PathError](err); ok {
		path = e.Path
	}
	r.corrupt = append(r.corrupt, err.Error())
	r.reportCorrupt(path, err)
}

func (r *Runtime) reportCorrupt(path string, err error) {
	r.log.Warn("state file cannot be read", "path", path, "err", err)
	if r.hooks.Corrupt != nil {
		r.hooks.Corrupt(CorruptInfo{Path: path, Err: err})
	}
}

// Close lets go of the state directory. What runs goes on running; the next
// Runtime on the directory finds it. Event streams end; other calls that are
// under way are not waited for and may fail. A second Close does nothing.
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

// errClosed is the answer after Close, as of a runtime that cannot be reached.
var errClosed = status.Error(codes.Unavailable, "process: the runtime is closed")

func (r *Runtime) open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	return nil
}

// Version tells that this is the runtime "process", speaking CRI v1.
func (r *Runtime) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version: "0.1.0", RuntimeName: Name, RuntimeVersion: runtimeVersion, RuntimeApiVersion: criVersion,
	}, nil
}

// Status says that the runtime and the network are ready: there is nothing of
// either that could not be. With verbose, info "corrupt" lists the records
// that New could not read, one per line.
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
