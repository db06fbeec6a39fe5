package oracle

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A machine is the CRI runtime of a scenario: a fakecri.Runtime that runs probes and hooks, and records
// the calls that change something.
type machine struct {
	*fakecri.Runtime

	recorder *recorder
	seed     uint64

	mu      sync.Mutex
	windows []window
	calls   int                 // of all methods
	atCall  map[int]func() bool // called before a call; true: the call has its effect and is not answered
	clean   map[string][]string // containers that exit with 0 on TERM, by pod
	stopped map[string]bool     // containers and sandboxes for which a stop was called, by ID
	exempt  map[string]bool     // IDs that an operator acts on, without faults
}

// A window is a fault until a time.
type window struct {
	step  Step
	until time.Time
}

func newMachine(s Scenario, seed uint64, r *recorder) (*machine, error) {
	m := &machine{recorder: r, seed: seed, atCall: map[int]func() bool{}, clean: map[string][]string{}, stopped: map[string]bool{}, exempt: map[string]bool{}}
	var err error
	m.Runtime, err = fakecri.New(fakecri.Config{
		Name: runtimeName, Behaviors: s.behaviors(), Seed: seed, Faults: m.fault, Observe: m.observe, WriteLogs: true,
	})
	return m, err
}

// fail applies the fault of a step for its duration.
func (m *machine) fail(s Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.windows = append(m.windows, window{s, time.Now().Add(s.For)})
}

// onCall calls do at the n-th call from now on, before the call has its effect. If do returns true, the call has
// its effect and its response is lost; otherwise it fails and has no effect.
func (m *machine) onCall(n int, do func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.atCall[m.calls+n] = do
}

// fault returns the fault of a call.
func (m *machine) fault(c fake.Call) fake.Fault {
	if c.Method != "ExecSync" && !changes[c.Method] {
		m.recorder.listed()
	}
	m.mu.Lock()
	if m.exempt[c.ID] {
		m.mu.Unlock()
		return fake.Fault{}
	}
	m.calls++
	n := m.calls
	do := m.atCall[n]
	delete(m.atCall, n)
	fault := fake.Fault{}
	for i, w := range m.windows {
		f, ok := w.step.criFault(c)
		if ok && time.Now().Before(w.until) && roll(m.seed, uint64(i), uint64(n)) < w.step.Percent {
			fault = f
			break
		}
	}
	m.mu.Unlock()
	if do != nil {
		return fake.Fault{Lost: do(), Hang: true}
	}
	return fault
}

// changes are the methods that are recorded, besides ExecSync.
var changes = map[string]bool{
	"RunPodSandbox": true, "StopPodSandbox": true, "RemovePodSandbox": true, "CreateContainer": true, "StartContainer": true,
	"StopContainer": true, "RemoveContainer": true, "PullImage": true,
}

// remove removes containers of a pod, as an operator does: the one of that name, or all with their sandboxes
// if the name is empty.
func (m *machine) remove(ctx context.Context, pod types.UID, name string) {
	act := func(id string, do func(context.Context, string) error) {
		m.mu.Lock()
		m.exempt[id] = true
		m.mu.Unlock()
		_ = do(ctx, id) // it may be just being started, or the runtime may be down
		m.mu.Lock()
		delete(m.exempt, id)
		m.mu.Unlock()
	}
	for _, c := range m.Containers(string(pod)) {
		if name == "" || c.Name == name {
			act(c.ID, m.Runtime.RemoveContainer)
		}
	}
	if name == "" {
		for _, s := range m.Sandboxes(string(pod)) {
			act(s.ID, m.Runtime.RemovePodSandbox)
		}
	}
}

// crash stops all containers of a pod, and its sandbox.
func (m *machine) crash(pod types.UID) {
	for _, c := range m.Containers(string(pod)) {
		if c.State == fakecri.Running {
			_ = m.Kill(c.Pod, c.Name) // it may have exited
		}
	}
	_ = m.KillSandbox(string(pod)) // it may have none
}

// roll returns a number from 0 to 99.
func roll(words ...uint64) int {
	h := fnv.New64a()
	for _, w := range words {
		h.Write(strconv.AppendUint(nil, w, 36))
		h.Write([]byte{0})
	}
	return int(h.Sum64() >> 33 % 100)
}

// setClean sets the containers of a pod that exit with 0 on TERM.
func (m *machine) setClean(pod types.UID, containers []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clean[string(pod)] = containers
}

// observe records a change at its time: a kubelet may act on it before it is observed.
func (m *machine) observe(c fakecri.Change) {
	m.mu.Lock()
	stopped := m.stopped[c.ID] || m.stopped[c.Sandbox]
	m.mu.Unlock()
	m.recorder.addAt(c.At, Record{Change: &Change{
		Pod: types.UID(c.Pod), Container: c.Container, ID: c.ID, Sandbox: c.Sandbox, Image: c.Image, Attempt: c.Attempt,
		To: c.To.String(), ExitCode: c.ExitCode, Reason: c.Reason, Stopped: stopped && c.To == fakecri.Exited,
	}})
}

// container returns a container by its ID, nil if there is none.
func (m *machine) container(id string) *fakecri.Container {
	for _, c := range m.Containers("") {
		if c.ID == id {
			return &c
		}
	}
	return nil
}

// sandboxPod returns the UID of the pod of a sandbox, empty if there is none.
func (m *machine) sandboxPod(id string) types.UID {
	for _, s := range m.Sandboxes("") {
		if s.ID == id {
			return types.UID(s.Pod)
		}
	}
	return ""
}

// called records a call that began at a time.
func (m *machine) called(c Call, began time.Time, err error) {
	c.Took = time.Since(began)
	if err != nil {
		c.Err = err.Error()
	}
	m.recorder.add(Record{Call: &c})
}

// ofContainer returns a Call about a container.
func (m *machine) ofContainer(method, id string) Call {
	c := Call{Method: method, ID: id}
	if of := m.container(id); of != nil {
		c.Pod, c.Container = types.UID(of.Pod), of.Name
	}
	return c
}

func (m *machine) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	began := time.Now()
	id, err := m.Runtime.RunPodSandbox(ctx, config, handler)
	m.called(Call{Method: "RunPodSandbox", Pod: types.UID(config.GetMetadata().GetUid()), ID: id}, began, err)
	return id, err
}

func (m *machine) StopPodSandbox(ctx context.Context, id string) error {
	c, began := Call{Method: "StopPodSandbox", Pod: m.sandboxPod(id), ID: id}, time.Now()
	m.stopping(id)
	err := m.Runtime.StopPodSandbox(ctx, id)
	m.called(c, began, err)
	return err
}

func (m *machine) RemovePodSandbox(ctx context.Context, id string) error {
	c, began := Call{Method: "RemovePodSandbox", Pod: m.sandboxPod(id), ID: id}, time.Now()
	m.stopping(id)
	err := m.Runtime.RemovePodSandbox(ctx, id)
	m.called(c, began, err)
	return err
}

func (m *machine) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	began := time.Now()
	id, err := m.Runtime.CreateContainer(ctx, sandbox, config, sandboxConfig)
	m.called(Call{Method: "CreateContainer", Pod: types.UID(sandboxConfig.GetMetadata().GetUid()), Container: config.GetMetadata().GetName(), ID: id}, began, err)
	return id, err
}

func (m *machine) StartContainer(ctx context.Context, id string) error {
	c, began := m.ofContainer("StartContainer", id), time.Now()
	err := m.Runtime.StartContainer(ctx, id)
	m.called(c, began, err)
	return err
}

func (m *machine) StopContainer(ctx context.Context, id string, timeout int64) error {
	c, began := m.ofContainer("StopContainer", id), time.Now()
	c.Timeout = timeout
	m.stopping(id)
	if timeout > 0 && m.isClean(c) {
		_ = m.Exit(string(c.Pod), c.Container, 0) // it may have exited
	}
	err := m.Runtime.StopContainer(ctx, id, timeout)
	m.called(c, began, err)
	return err
}

func (m *machine) isClean(c Call) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.clean[string(c.Pod)] {
		if name == c.Container {
			return true
		}
	}
	return false
}

// stopping records that a container or sandbox is being stopped.
func (m *machine) stopping(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped[id] = true
}

func (m *machine) RemoveContainer(ctx context.Context, id string) error {
	c, began := m.ofContainer("RemoveContainer", id), time.Now()
	m.stopping(id)
	err := m.Runtime.RemoveContainer(ctx, id)
	m.called(c, began, err)
	return err
}

func (m *machine) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	began := time.Now()
	ref, err := m.Runtime.PullImage(ctx, spec, auth, sandbox)
	m.called(Call{Method: "PullImage", Pod: types.UID(sandbox.GetMetadata().GetUid()), Image: spec.GetImage()}, began, err)
	return ref, err
}

var errFailed = errors.New("command failed")

// ExecSync runs probes, and hooks as the simulation does.
func (m *machine) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	c, began := m.ofContainer("ExecSync", id), time.Now()
	c.Command = cmd
	stdout, stderr, err = m.Runtime.ExecSync(ctx, id, cmd, timeout)
	if of := m.container(id); err == nil && of != nil && len(cmd) == 2 && cmd[0] == probeCommand &&
		!passes(of.Config.GetImage().GetUserSpecifiedImage(), cmd[1], time.Since(of.Started)) {
		err = utilexec.CodeExitError{Err: errFailed, Code: 1}
	}
	if exit, ok := errors.AsType[utilexec.CodeExitError](err); ok {
		c.Exit = int32(exit.Code)
		m.called(c, began, nil)
		return stdout, stderr, err
	}
	m.called(c, began, err)
	return stdout, stderr, err
}
