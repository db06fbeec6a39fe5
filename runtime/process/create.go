package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CreateContainer records a container without starting it. It returns an error if
// the container has no command (there is no image that has one), if the host does
// not have the command or the working directory, if the agent cannot switch to
// the user, or if a terminal is requested.
//
// sandboxConfig is not used; the config of RunPodSandbox applies.
func (r *Runtime) CreateContainer(_ context.Context, podSandboxID string, config *runtimeapi.ContainerConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	name := config.GetMetadata().GetName()
	if name == "" {
		return "", status.Error(codes.InvalidArgument, "process: create container: metadata has no name")
	}
	r.mu.Lock()
	s, ok := r.sandboxes[podSandboxID]
	var logDir string
	if ok {
		logDir = s.rec.LogDirectory
	}
	r.mu.Unlock()
	if !ok {
		return "", status.Errorf(codes.NotFound, "process: create container %s: sandbox %q not found", name, podSandboxID)
	}

	rec := containerRecord{
		Version: formatVersion, ID: newID(), SandboxID: podSandboxID, CreatedAt: time.Now().UnixNano(),
		Name: name, Attempt: config.GetMetadata().GetAttempt(),
		Image: config.GetImage().GetImage(), UserImage: config.GetImage().GetUserSpecifiedImage(),
		ImageAnnotations: config.GetImage().GetAnnotations(),
		Labels:           config.GetLabels(), Annotations: config.GetAnnotations(),
	}
	for _, m := range config.GetMounts() {
		rec.Mounts = append(rec.Mounts, mountRecord{ContainerPath: m.GetContainerPath(), HostPath: m.GetHostPath(), Readonly: m.GetReadonly()})
	}
	var err error
	if rec.StopSignal, err = signalOf(config.GetStopSignal()); err != nil {
		return "", status.Errorf(codes.InvalidArgument, "process: create container %s: %v", name, err)
	}
	if rec.Process, err = r.processFor(rec.ID, logDir, config); err != nil {
		return "", status.Errorf(codes.InvalidArgument, "process: create container %s: %v", name, err)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return "", errClosed
	}
	if s, ok := r.sandboxes[podSandboxID]; !ok || !s.rec.Ready {
		return "", status.Errorf(codes.FailedPrecondition, "process: create container %s: sandbox %s is not ready", name, podSandboxID)
	}
	for id, c := range r.containers {
		// Retrying a create whose response was lost must not create a second
		// instance.
		if c.rec.SandboxID == podSandboxID && c.rec.Name == name && c.rec.Attempt == rec.Attempt {
			return "", status.Errorf(codes.AlreadyExists, "process: create container %s: attempt %d already exists as %s", name, rec.Attempt, id)
		}
	}
	if err := r.makeContainer(rec); err != nil {
		return "", status.Errorf(codes.Internal, "process: create container %s: %v", name, err)
	}
	r.containers[rec.ID] = &container{rec: rec}
	r.publishLocked(podSandboxID, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, rec.ID)
	return rec.ID, nil
}

// processFor resolves the requested process against this host.
func (r *Runtime) processFor(id, logDir string, config *runtimeapi.ContainerConfig) (processSpec, error) {
	var none processSpec
	argv := append(append([]string(nil), config.GetCommand()...), config.GetArgs()...)
	if len(argv) == 0 {
		return none, fmt.Errorf("no command: there is no image with an entrypoint; set the container's command")
	}
	if config.GetTty() {
		return none, fmt.Errorf("terminals (tty) are not supported")
	}
	sc := config.GetLinux().GetSecurityContext()
	user, home, err := credentialFor(sc, self())
	if err != nil {
		return none, err
	}
	if home == "" {
		home = os.Getenv("HOME")
	}
	path := os.Getenv("PATH")
	if path == "" {
		path = defaultPath
	}
	spec := processSpec{
		Args: argv, Dir: config.GetWorkingDir(), User: user, NoNewPrivs: sc.GetNoNewPrivs(),
		Env: environment(config.GetEnvs(), [][2]string{
			{"PATH", path}, {"HOME", home},
			{envContainerID, id}, {envTerminationLog, terminationLog(config)},
		}),
	}
	if spec.Dir == "" {
		spec.Dir = r.workDir(id)
	} else if info, err := os.Stat(spec.Dir); err != nil {
		return none, fmt.Errorf("working directory: %w", err)
	} else if !info.IsDir() || !filepath.IsAbs(spec.Dir) {
		return none, fmt.Errorf("working directory %s is not a directory or not an absolute path", spec.Dir)
	}
	if spec.Path, err = findCommand(argv[0], spec.Dir, lookup(spec.Env, "PATH")); err != nil {
		return none, err
	}
	if logPath := config.GetLogPath(); logDir != "" && logPath != "" {
		if !filepath.IsLocal(logPath) {
			return none, fmt.Errorf("log path %q is outside the log directory", logPath)
		}
		spec.LogPath = filepath.Join(logDir, logPath)
		if !filepath.IsAbs(spec.LogPath) {
			return none, fmt.Errorf("log path %q is not absolute", spec.LogPath)
		}
		if err := os.MkdirAll(filepath.Dir(spec.LogPath), 0o755); err != nil {
			return none, fmt.Errorf("log directory: %w", err)
		}
	}
	return spec, nil
}

// makeContainer creates the directory in tmp and renames it.
func (r *Runtime) makeContainer(rec containerRecord) (err error) {
	stage := r.dir.path("tmp", rec.ID)
	if err := os.Mkdir(stage, 0o711); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.clear(context.Background(), stage)
		}
	}()
	work := filepath.Join(stage, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	if user := rec.Process.User; user != nil {
		if err := os.Chown(work, int(user.UID), int(user.GID)); err != nil {
			return err
		}
	}
	if err := makeAlive(filepath.Join(stage, "alive")); err != nil {
		return fmt.Errorf("make FIFO: %w", err)
	}
	if err := r.dir.write(stage, filepath.Join(stage, "container.json"), rec); err != nil {
		return err
	}
	return os.Rename(stage, r.dir.container(rec.ID))
}
