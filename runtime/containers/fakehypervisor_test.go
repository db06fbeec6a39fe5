package containers_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/containers/containerstest"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A fakeHypervisor is a Hypervisor in memory. Its machines run in a fake backend.
type fakeHypervisor struct {
	below *containerstest.Backend
	mu    sync.Mutex
	specs []MachineSpec // by ID, the name
	ids   map[string]string
}

func (h *fakeHypervisor) Create(_ context.Context, spec MachineSpec) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.specs {
		if s.Name == spec.Name {
			return "", errExists
		}
	}
	h.specs = append(h.specs, spec)
	return "vm-" + spec.Name, nil
}

func (h *fakeHypervisor) spec(id string) (MachineSpec, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.specs {
		if "vm-"+s.Name == id {
			return s, h.ids[id], nil
		}
	}
	return MachineSpec{}, "", errUnknown
}

func (h *fakeHypervisor) Start(ctx context.Context, id string) error {
	spec, _, err := h.spec(id)
	if err != nil {
		return err
	}
	inner, err := h.below.Run(ctx, containers.Container{Key: spec.Name, Image: spec.Image, Name: spec.Name})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ids == nil {
		h.ids = map[string]string{}
	}
	h.ids[id] = inner
	return nil
}

func (h *fakeHypervisor) Stop(ctx context.Context, id string, force bool) error {
	_, inner, err := h.spec(id)
	if err != nil || inner == "" {
		return h.Delete(ctx, id) // it was not started
	}
	if force {
		return h.below.Stop(ctx, inner, 0)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	_ = h.below.Stop(ctx, inner, time.Hour)
	return nil
}

func (h *fakeHypervisor) Delete(ctx context.Context, id string) error {
	_, inner, err := h.spec(id)
	if err == nil && inner != "" {
		err = h.below.Remove(ctx, inner)
	}
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.ids, id)
	h.specs = slices.DeleteFunc(h.specs, func(s MachineSpec) bool { return "vm-"+s.Name == id })
	return nil
}

func (h *fakeHypervisor) List(ctx context.Context) (ids []string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.specs {
		ids = append(ids, "vm-"+s.Name)
	}
	return ids, ctx.Err()
}

func (h *fakeHypervisor) Inspect(ctx context.Context, id string) (Machine, error) {
	spec, inner, err := h.spec(id)
	if err != nil {
		return Machine{}, err
	}
	vm := Machine{MachineSpec: spec, ID: id, Status: "created"}
	all, err := h.below.List(ctx)
	for _, s := range all {
		if s.ID == inner {
			vm.Status = map[containers.Phase]string{containers.Running: "running", containers.Exited: "stopped"}[s.Phase]
			vm.IP, vm.Started, vm.Stopped, vm.ExitCode = s.IP, s.StartedAt, s.FinishedAt, s.ExitCode
		}
	}
	return vm, err
}

func (h *fakeHypervisor) Exec(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
	_, inner, err := h.spec(id)
	if err != nil {
		return 0, err
	}
	return h.below.Exec(ctx, inner, cmd, s)
}

// Logs returns what a machine has printed until now.
func (h *fakeHypervisor) Logs(ctx context.Context, id string) (string, error) {
	_, inner, err := h.spec(id)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	now, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	err = h.below.ReadLog(now, inner, containers.LogOffset{}, runtime.Streams{Stdout: &text, Stderr: &text})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return text.String(), err
}

// The adapter has at most 120 lines, and the runtime over it keeps the contract.
func TestAHypervisorIsARuntime(t *testing.T) {
	source, err := os.ReadFile("hypervisor_test.go")
	require.NoError(t, err)
	_, adapter, _ := strings.Cut(string(source), "// Adapter begins")
	adapter, _, _ = strings.Cut(adapter, "// Adapter ends")
	lines := strings.Count(adapter, "\n")
	assert.LessOrEqual(t, lines, 120)
	t.Logf("the adapter has %d lines", lines)

	s := suite()
	s.Backend.LoseSandbox, s.Containers.Message = nil, nil // no groups, no termination messages
	s.Gaps = map[string]string{
		"ContainerWithReadyVolumesStarts": "a machine does not see directories of this host: such a pod is rejected",
		"MissingVolumeIsConfigError":      "the same: the pod is rejected",
		"SyncErrorJoinsActionErrors":      "the same: the pod is rejected",
		"ListCostIsIndependentOfPodCount": "the list of the hypervisor has IDs only, and each machine is inspected",
	}
	runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime {
		below := newFake(nil)
		cfg := configOf(t, machines{&fakeHypervisor{below: below}})
		cfg.Support = containers.Support{SeparateContainers: true, HostNamespaces: true}
		return over(t, cfg, below)
	}, s)
}

// Slow starts and queues change no requirement.
func TestASlowBackendKeepsTheContractOfARuntime(t *testing.T) {
	for name, more := range map[string]func(*fake.Behavior){
		"slow":   func(b *fake.Behavior) { b.StartDelay = 300 * time.Millisecond },
		"queued": func(b *fake.Behavior) { b.QueueDelay = 300 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime {
				below := newFake(more)
				return over(t, configOf(t, below), below)
			}, suite())
		})
	}
}
