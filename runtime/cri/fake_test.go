package cri_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A fakeCRI is a CRI runtime in memory. It refuses what a real one refuses:
// names that are taken, starts of what is not created, containers in a sandbox
// that is down. What the engine does not call panics.
type fakeCRI struct {
	internalapi.RuntimeService

	mu         sync.Mutex
	n          int
	sandboxes  []*fakeSandbox
	containers []*fakeContainer
	images     map[string]*runtimeapi.Image
	calls      []string // "StartContainer web", in order
	reads      []string // "ListContainers", in order
	atOnce     map[string]int

	// before fails a call that then has no effect; after fails one that had.
	before, after func(op, name string) error

	// dies is how long the named container takes to exit after TERM.
	dies map[string]time.Duration

	// auths are the credentials of pulls, in order: "user:password".
	auths    []string
	handlers []string // they were for

	// pulledFor are the pods that pulls said they are for, in order.
	pulledFor []string

	// pull stands for the registry; nil: every pull works at once.
	pull func(ctx context.Context, image string) error

	// exec answers ExecSync.
	exec func(ctx context.Context, container string, cmd []string) error

	// reports: the status of a container has its resources.
	reports bool

	// said is what the runtime says of an exit.
	said map[string]string
}

type fakeSandbox struct {
	id      string
	config  *runtimeapi.PodSandboxConfig
	created time.Time
	down    bool
}

type fakeContainer struct {
	id      string
	sandbox *fakeSandbox
	config  *runtimeapi.ContainerConfig
	state   runtimeapi.ContainerState
	code    int32

	created, started, ended time.Time

	term chan struct{} // closed when it has exited
	stop []int64       // the graces it was asked to stop with
}

func newFake() *fakeCRI {
	return &fakeCRI{
		images: map[string]*runtimeapi.Image{}, atOnce: map[string]int{},
		dies: map[string]time.Duration{}, said: map[string]string{},
	}
}

// engine returns the engine over f, with its files in a directory of the test,
// and the events it records.
func (f *fakeCRI) engine(t *testing.T, cfg cri.Config) (*cri.Runtime, *events) {
	t.Helper()
	dir := t.TempDir()
	seen := new(events)
	if cfg.Runtime == nil {
		cfg.Runtime = f
	}
	cfg.Name, cfg.Images, cfg.Record = "fake", fakeImages{f}, seen.record
	cfg.RootDir, cfg.PodLogsDir = dir+"/root", dir+"/logs"
	rt, err := cri.New(cfg)
	require.NoError(t, err)
	return rt, seen
}

// events is what a Config.Record was told.
type events struct {
	mu   sync.Mutex
	list []runtime.Event
}

func (e *events) record(ev runtime.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
}

// take returns the events since the last take, as "Type Reason path: message".
func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var lines []string
	for _, ev := range e.list {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", ev.Type, ev.Reason, ev.Object.FieldPath, ev.Message))
	}
	e.list = nil
	return lines
}

// did returns the calls of the given operations since the last did, or of all
// that change something.
func (f *fakeCRI) did() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

// read returns the reads since the last read.
func (f *fakeCRI) read() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	reads := f.reads
	f.reads = nil
	return reads
}

// begin notes a call, and returns the error it is to fail with before it has an
// effect. It expects mu not to be held.
func (f *fakeCRI) begin(ctx context.Context, op, name string) error {
	f.mu.Lock()
	f.calls = append(f.calls, op+" "+name)
	before := f.before
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	if before != nil {
		return before(op, name)
	}
	return nil
}

// end returns the error that a call whose effect took place is to fail with.
func (f *fakeCRI) end(op, name string) error {
	f.mu.Lock()
	after := f.after
	f.mu.Unlock()
	if after != nil {
		return after(op, name)
	}
	return nil
}

func (f *fakeCRI) id(kind string) string {
	f.n++
	return fmt.Sprintf("%s%02d", kind, f.n)
}

func (f *fakeCRI) Close(context.Context) error { return nil }

func (f *fakeCRI) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "1", RuntimeApiVersion: "v1"}, nil
}

func (f *fakeCRI) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, _ string) (string, error) {
	if err := f.begin(ctx, "RunPodSandbox", config.Metadata.Name); err != nil {
		return "", err
	}
	f.mu.Lock()
	for _, s := range f.sandboxes {
		if s.config.Metadata.Uid == config.Metadata.Uid && s.config.Metadata.Attempt == config.Metadata.Attempt {
			f.mu.Unlock()
			return "", status.Errorf(codes.Unknown, "failed to reserve sandbox name: name is reserved for %q", s.id)
		}
	}
	s := &fakeSandbox{id: f.id("s"), config: config, created: time.Now()}
	f.sandboxes = append(f.sandboxes, s)
	f.mu.Unlock()
	if err := f.end("RunPodSandbox", config.Metadata.Name); err != nil {
		return "", err
	}
	return s.id, nil
}

func (f *fakeCRI) StopPodSandbox(ctx context.Context, id string) error {
	if err := f.begin(ctx, "StopPodSandbox", id); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sandboxes {
		if s.id == id {
			s.down = true
			for _, c := range f.containers {
				if c.sandbox == s {
					c.exit(137)
				}
			}
			return nil
		}
	}
	return status.Errorf(codes.NotFound, "no sandbox %q", id)
}

func (f *fakeCRI) RemovePodSandbox(ctx context.Context, id string) error {
	if err := f.begin(ctx, "RemovePodSandbox", id); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sandboxes = slices.DeleteFunc(f.sandboxes, func(s *fakeSandbox) bool { return s.id == id })
	f.containers = slices.DeleteFunc(f.containers, func(c *fakeContainer) bool { return c.sandbox.id == id })
	return nil
}

func (s *fakeSandbox) state() runtimeapi.PodSandboxState {
	if s.down {
		return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	}
	return runtimeapi.PodSandboxState_SANDBOX_READY
}

func (f *fakeCRI) CreateContainer(ctx context.Context, sandboxID string, config *runtimeapi.ContainerConfig, in *runtimeapi.PodSandboxConfig) (string, error) {
	name := config.Metadata.Name
	if err := f.begin(ctx, "CreateContainer", name); err != nil {
		return "", err
	}
	f.mu.Lock()
	i := slices.IndexFunc(f.sandboxes, func(s *fakeSandbox) bool { return s.id == sandboxID && !s.down })
	if i < 0 {
		f.mu.Unlock()
		return "", status.Errorf(codes.NotFound, "no sandbox %q that is ready", sandboxID)
	}
	users := config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()
	if !proto.Equal(users, in.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()) { // as containerd 2
		f.mu.Unlock()
		return "", status.Error(codes.Unknown, "user namespace config for sandbox is different from container")
	}
	for _, c := range f.containers {
		if c.sandbox.config.Metadata.Uid == f.sandboxes[i].config.Metadata.Uid &&
			c.config.Metadata.Name == name && c.config.Metadata.Attempt == config.Metadata.Attempt {
			f.mu.Unlock()
			return "", status.Errorf(codes.Unknown, "failed to reserve container name: name is reserved for %q", c.id)
		}
	}
	c := &fakeContainer{id: f.id("c"), sandbox: f.sandboxes[i], config: config, created: time.Now(), term: make(chan struct{})}
	f.containers = append(f.containers, c)
	f.mu.Unlock()
	if err := f.end("CreateContainer", name); err != nil {
		return "", err
	}
	return c.id, nil
}

// find returns a container by its ID. It expects mu to be held.
func (f *fakeCRI) find(id string) (*fakeContainer, error) {
	for _, c := range f.containers {
		if c.id == id {
			return c, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "no container %q", id)
}

func (f *fakeCRI) nameOf(id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, err := f.find(id); err == nil {
		return c.config.Metadata.Name
	}
	return id
}

func (f *fakeCRI) StartContainer(ctx context.Context, id string) error {
	name := f.nameOf(id)
	if err := f.begin(ctx, "StartContainer", name); err != nil {
		return err
	}
	f.mu.Lock()
	c, err := f.find(id)
	if err == nil && c.state != runtimeapi.ContainerState_CONTAINER_CREATED {
		err = status.Errorf(codes.Unknown, "container is in %s state", c.state)
	}
	if err != nil {
		f.mu.Unlock()
		return err
	}
	c.state, c.started = runtimeapi.ContainerState_CONTAINER_RUNNING, time.Now()
	running := 0
	for _, o := range f.containers {
		if o.state == runtimeapi.ContainerState_CONTAINER_RUNNING && o.config.Metadata.Name == name && o.sandbox == c.sandbox {
			running++
		}
	}
	f.atOnce[name] = max(f.atOnce[name], running)
	f.mu.Unlock()
	return f.end("StartContainer", name)
}

// exit ends the container. mu is held.
func (c *fakeContainer) exit(code int32) {
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return
	}
	c.state, c.code, c.ended = runtimeapi.ContainerState_CONTAINER_EXITED, code, time.Now()
	close(c.term)
}

// exits ends the newest instance of the named container.
func (f *fakeCRI) exits(name string, code int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newest(name).exit(code)
}

// newest returns the newest instance of the named container; mu is held.
func (f *fakeCRI) newest(name string) *fakeContainer {
	for _, c := range slices.Backward(f.containers) {
		if c.config.Metadata.Name == name {
			return c
		}
	}
	return nil
}

// StopContainer takes as long as the container takes to die, and at most the
// timeout. What was begun goes on if ctx ends.
func (f *fakeCRI) StopContainer(ctx context.Context, id string, timeout int64) error {
	name := f.nameOf(id)
	if err := f.begin(ctx, "StopContainer", name); err != nil {
		return err
	}
	f.mu.Lock()
	c, err := f.find(id)
	if err != nil || c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		f.mu.Unlock()
		return err
	}
	c.stop = append(c.stop, timeout)
	takes := min(f.dies[name], time.Duration(timeout)*time.Second)
	code := int32(0)
	if f.dies[name] > takes {
		code = 137
	}
	f.mu.Unlock()
	t := time.NewTimer(takes)
	defer t.Stop()
	select {
	case <-t.C:
		f.mu.Lock()
		c.exit(code)
		f.mu.Unlock()
		return f.end("StopContainer", name)
	case <-c.term:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func (f *fakeCRI) RemoveContainer(ctx context.Context, id string) error {
	if err := f.begin(ctx, "RemoveContainer", f.nameOf(id)); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.containers = slices.DeleteFunc(f.containers, func(c *fakeContainer) bool { return c.id == id })
	return nil
}

func (f *fakeCRI) ExecSync(ctx context.Context, id string, cmd []string, _ time.Duration) ([]byte, []byte, error) {
	name := f.nameOf(id)
	if err := f.begin(ctx, "ExecSync", name); err != nil {
		return nil, nil, err
	}
	if f.exec != nil {
		return nil, nil, f.exec(ctx, name, cmd)
	}
	return nil, nil, nil
}

// running returns the names of the containers that run, sorted.
func (f *fakeCRI) running() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, c := range f.containers {
		if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
			names = append(names, c.config.Metadata.Name)
		}
	}
	return slices.Sorted(slices.Values(names))
}
