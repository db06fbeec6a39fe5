package cri_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A fakeCRI wraps the in-memory runtime of package fakecri, exposing only its CRI
// services. It records calls and can make them fail.
type fakeCRI struct {
	internalapi.RuntimeService
	internalapi.ImageManagerService
	mem *fakecri.Runtime

	mu     sync.Mutex
	calls  []string           // "StartContainer web", in order
	reads  []string           // "ListContainers", in order
	graces map[string][]int64 // with which containers were stopped that ran, by ID
	runs   map[string]int     // instances of a container, by its sandbox and name
	atOnce map[string]int     // the most of them at one time, by its name

	// Of pulls, in order: "user:password", the handlers that they were for, and
	// the pods.
	auths, handlers, pulledFor []string

	// before fails a call that then has no effect; after fails one that had.
	before, after func(op, name string) error

	observe func(fakecri.Change)                                            // may be nil
	pull    func(ctx context.Context, image string) error                   // the registry; nil: every pull works at once
	exec    func(ctx context.Context, container string, cmd []string) error // answers ExecSync; nil: every command works at once
}

func newFake() *fakeCRI {
	f := &fakeCRI{graces: map[string][]int64{}, runs: map[string]int{}, atOnce: map[string]int{}}
	mem, err := fakecri.New(fakecri.Config{
		Name: "fake", Handlers: []string{"able", "kata"}, Faults: f.fault, Observe: f.changed, PodCheckpoints: true,
		Behaviors: fake.Behaviors{Images: map[string]fake.Behavior{"*": {Exec: f.answer}}},
	})
	must(err)
	f.mem, f.RuntimeService, f.ImageManagerService = mem, mem, mem
	return f
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
	cfg.Name, cfg.Images, cfg.Record = "fake", f, seen.record
	cfg.Dirs.Root, cfg.Dirs.PodLogs = dir+"/root", dir+"/logs"
	rt, err := cri.New(cfg)
	require.NoError(t, err)
	return rt, seen
}

func (f *fakeCRI) Close(context.Context) error { return nil }

// fault records a call and returns the fault to inject.
func (f *fakeCRI) fault(c fake.Call) fake.Fault {
	name := c.Container
	switch c.Method {
	case "ListPodSandbox", "ListContainers", "PodSandboxStatus", "ContainerStatus":
		f.mu.Lock()
		defer f.mu.Unlock()
		f.reads = append(f.reads, c.Method)
		return fake.Fault{}
	case "RunPodSandbox", "RestorePod":
		name = string(c.Pod)
	case "StopPodSandbox", "RemovePodSandbox":
		name = f.podOf(c.ID)
	case "ImageStatus":
		name = c.Image
	case "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "ExecSync":
	default:
		return fake.Fault{}
	}
	f.note(c.Method + " " + name)
	if f.before != nil {
		if err := f.before(c.Method, name); err != nil {
			return fake.Fault{Err: err}
		}
	}
	if f.after != nil {
		if err := f.after(c.Method, name); err != nil {
			return fake.Fault{Err: err, Lost: true}
		}
	}
	return fake.Fault{}
}

func (f *fakeCRI) note(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

// podOf is the ID of a sandbox, if the test gave it that, or else the name of its
// pod and which one of it it is: "web/0".
func (f *fakeCRI) podOf(id string) string {
	for _, s := range f.sandboxes() {
		if s.ID == id && len(id) == 64 {
			return fmt.Sprintf("%s/%d", s.Name, s.Attempt)
		}
	}
	return id
}

func (f *fakeCRI) changed(c fakecri.Change) {
	f.mu.Lock()
	switch key := c.Sandbox + c.Container; {
	case c.To == fakecri.Running:
		f.runs[key]++
		f.atOnce[c.Container] = max(f.atOnce[c.Container], f.runs[key])
	case c.From == fakecri.Running:
		f.runs[key]--
	}
	f.mu.Unlock()
	if f.observe != nil {
		f.observe(c)
	}
}

// PodSandboxStatus adds a second address.
func (f *fakeCRI) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	answer, err := f.RuntimeService.PodSandboxStatus(ctx, id, verbose)
	if err == nil {
		answer.Status.Network.AdditionalIps = []*runtimeapi.PodIP{{Ip: "fd00::7"}}
	}
	return answer, err
}

func (f *fakeCRI) StopContainer(ctx context.Context, id string, timeout int64) error {
	for _, c := range f.containers() {
		if c.ID == id && c.State == fakecri.Running {
			f.mu.Lock()
			f.graces[id] = append(f.graces[id], timeout)
			f.mu.Unlock()
		}
	}
	return f.RuntimeService.StopContainer(ctx, id, timeout)
}

// asked is the key of the name of the container in which a command is to run.
type asked struct{}

func (f *fakeCRI) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	return f.RuntimeService.ExecSync(context.WithValue(ctx, asked{}, f.nameOf(id)), id, cmd, timeout)
}

// answer is what every container does with a command.
func (f *fakeCRI) answer(ctx context.Context, cmd []string, _ runtime.Streams) (int32, error) {
	if f.exec == nil {
		return 0, nil
	}
	return 0, f.exec(ctx, ctx.Value(asked{}).(string), cmd)
}

func (f *fakeCRI) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	f.note("PullImage " + spec.Image)
	f.mu.Lock()
	f.handlers = append(f.handlers, spec.RuntimeHandler)
	f.auths = append(f.auths, auth.GetUsername()+":"+auth.GetPassword())
	f.pulledFor = append(f.pulledFor, sandbox.GetMetadata().GetName())
	f.mu.Unlock()
	if f.before != nil {
		if err := f.before("PullImage", spec.Image); err != nil {
			return "", err
		}
	}
	if f.pull != nil {
		if err := f.pull(ctx, spec.Image); err != nil {
			return "", err
		}
	}
	return f.ImageManagerService.PullImage(ctx, spec, auth, sandbox)
}
