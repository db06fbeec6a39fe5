package cri_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// A fakeCRI is the runtime in memory of package fakecri, of which it has the
// services and nothing else: it notes calls, and has them fail.
type fakeCRI struct {
	internalapi.RuntimeService
	internalapi.ImageManagerService
	mem *fakecri.Runtime

	mu     sync.Mutex
	calls  []string // "StartContainer web", in order
	reads  []string // "ListContainers", in order
	graces map[string][]int64
	atOnce map[string]int // how many instances of a container have run at one time

	// before fails a call that then has no effect; after fails one that had.
	before, after func(op, name string) error

	// auths are the credentials of pulls, in order: "user:password".
	auths    []string
	handlers []string // they were for

	// pulledFor are the pods that pulls said they are for, in order.
	pulledFor []string

	// pull stands for the registry; nil: every pull works at once.
	pull func(ctx context.Context, image string) error

	// exec answers ExecSync.
	exec func(ctx context.Context, container string, cmd []string) error
}

func newFake() *fakeCRI {
	f := &fakeCRI{graces: map[string][]int64{}, atOnce: map[string]int{}}
	mem, err := fakecri.New(fakecri.Config{
		Name: "fake", Handlers: []string{"able", "kata"}, Behaviours: fakecri.Behaviours{Images: map[string]fakecri.Behaviour{"*": {Exec: f.answer}}},
	})
	if err != nil {
		panic(err)
	}
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

// did returns the calls that change something since the last did.
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

func (f *fakeCRI) sandboxes() []fakecri.Sandbox    { return f.mem.Sandboxes("") }
func (f *fakeCRI) containers() []fakecri.Container { return f.mem.Containers("") }

// newest returns the newest instance of the named container.
func (f *fakeCRI) newest(name string) *fakecri.Container {
	for _, c := range slices.Backward(f.containers()) {
		if c.Name == name {
			return &c
		}
	}
	return nil
}

// running returns the names of the containers that run, sorted.
func (f *fakeCRI) running() []string {
	var names []string
	for _, c := range f.containers() {
		if c.State == fakecri.Running {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// exits ends the named container, the newest that runs of the pod of the newest.
func (f *fakeCRI) exits(name string, code int32) {
	must(f.mem.Exit(f.newest(name).Pod, name, code))
}

// dies says how long the named container, which runs, takes to exit after TERM.
func (f *fakeCRI) dies(name string, after time.Duration) {
	must(f.mem.Linger(f.newest(name).Pod, name, after))
}

// put lets a sandbox and containers be there that the engine did not make.
func (f *fakeCRI) put(s *runtimeapi.PodSandboxStatus, containers ...*runtimeapi.ContainerStatus) {
	must(f.mem.Put(s, containers...))
}

// forgets removes every sandbox and what is in it.
func (f *fakeCRI) forgets() {
	for _, s := range f.sandboxes() {
		must(f.mem.RemovePodSandbox(context.Background(), s.ID))
	}
}

// statusOf returns that of a sandbox.
func (f *fakeCRI) statusOf(id string) *runtimeapi.PodSandboxStatus {
	answer, err := f.mem.PodSandboxStatus(context.Background(), id, false)
	must(err)
	return answer.Status
}

// alter lets a container have another status than it had.
func (f *fakeCRI) alter(c *fakecri.Container, change func(*runtimeapi.ContainerStatus)) {
	answer, err := f.mem.ContainerStatus(context.Background(), c.ID, false)
	must(err)
	must(f.mem.RemoveContainer(context.Background(), c.ID))
	change(answer.Status)
	f.put(&runtimeapi.PodSandboxStatus{Id: c.SandboxID}, answer.Status)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// stops are the graces that the newest instance of a container was asked to stop
// with while it ran.
func (f *fakeCRI) stops(name string) []int64 {
	id := f.newest(name).ID
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.graces[id]
}

// nameOf is that of a container.
func (f *fakeCRI) nameOf(id string) string {
	for _, c := range f.containers() {
		if c.ID == id {
			return c.Name
		}
	}
	return id
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

// call makes a call that is noted, unless it is to fail, and fails it if that is
// to be after its effect.
func call[T any](ctx context.Context, f *fakeCRI, op, name string, do func() (T, error)) (T, error) {
	var none T
	if err := f.begin(ctx, op, name); err != nil {
		return none, err
	}
	answer, err := do()
	f.mu.Lock()
	after := f.after
	f.mu.Unlock()
	if err == nil && after != nil {
		err = after(op, name)
	}
	if err != nil {
		return none, err
	}
	return answer, nil
}

func act(ctx context.Context, f *fakeCRI, op, name string, do func() error) error {
	_, err := call(ctx, f, op, name, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (f *fakeCRI) Close(context.Context) error { return nil }
