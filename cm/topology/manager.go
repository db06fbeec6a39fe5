package topology

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Provider allocates a kind of resource to containers: CPUs, memory, devices. The
// methods of [Manager] call it from their callers' goroutines; calls of Hints and
// Allocate do not overlap. A Provider may implement [Waiter] and [Reserver].
type Provider interface {
	// Concerns reports whether the pod may be allocated any of these resources.
	Concerns(pod *v1.Pod) bool

	// Hints returns the nodes from which the request of the container can be allocated;
	// that of the whole pod if c is nil.
	Hints(pod *v1.Pod, c *v1.Container) Hints

	// Allocate allocates the request of the container, if possible from the nodes of the
	// hint. Existing allocations of the container are kept. An error may be a
	// *runtime.Rejection, whose reason is then reported.
	Allocate(ctx context.Context, pod *v1.Pod, c *v1.Container, where Hint) error

	// Holds reports whether the pod has allocations. It keeps them if it is rejected by a later
	// Admit, because it may be running with them.
	Holds(uid types.UID) bool

	// Free releases all allocations of the pod. It is not an error if there are none.
	Free(uid types.UID)
}

// A Waiter is a Provider whose resources may become available later, such as the devices
// of a plugin that has not registered yet. Without it, a pod whose resources are missing is rejected
// by Allocate and does not wait for them.
type Waiter interface {
	// Wait returns an error that names the missing resource, or nil if the pod need not wait.
	Wait(pod *v1.Pod) error
}

// A Reserver is a Provider that calls another program to allocate. Admit calls Reserve instead of
// Allocate, and Complete afterwards: other pods are admitted while the program does not answer.
// Without it, they wait for Allocate.
type Reserver interface {
	// Reserve is Allocate without the calls of the program. Calls of Hints and Reserve do not
	// overlap.
	Reserve(ctx context.Context, pod *v1.Pod, c *v1.Container, where Hint) error

	// Complete makes the calls for what is reserved for the pod. After an error nothing is. It
	// is called concurrently for different pods.
	Complete(ctx context.Context, pod *v1.Pod) error
}

// The reasons of rejections.
const (
	reasonAffinity   = "TopologyAffinityError"
	ReasonUnexpected = "UnexpectedAdmissionError"
)

// Config configures a [Manager].
type Config struct {
	// Machine is required.
	Machine *Machine

	// Policy and Scope. Empty means none and container.
	Policy Policy
	Scope  Scope

	Options Options

	// PodLevel is that of the providers (cpu.Options, memory.Config): the messages of rejections of
	// pods with pod-level resources name the scope. Empty: these pods are treated like others.
	PodLevel Scope

	// Providers are called in this order: devices, CPUs, memory (rule top-6).
	Providers []Provider

	// Logger. If nil, messages are discarded.
	Logger *slog.Logger

	Hooks Hooks
}

// Hooks observe the manager, for metrics. Each may be nil.
type Hooks struct {
	// Admitted is called after each Admit.
	Admitted func(AdmitInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Admitted, o.Admitted)
	}
	return h
}

// AdmitInfo is the result of Admit.
type AdmitInfo struct {
	Pod   *v1.Pod
	Took  time.Duration
	Error error // *runtime.Rejection, or the cause of ctx; nil if admitted
}

// A Manager allocates the resources of the containers of pods, aligned to NUMA nodes as
// the policy demands. Safe for concurrent use; pods are admitted one at a time, except for the
// calls of a [Reserver].
type Manager struct {
	cfg  Config
	turn chan struct{} // held while resources are allocated
}

// NewManager returns a Manager for cfg.
func NewManager(cfg Config) (*Manager, error) {
	if cfg.Machine == nil {
		return nil, errors.New("topology: Config.Machine is nil")
	}
	var err error
	if cfg.Policy, err = parsePolicy(string(cfg.Policy)); err != nil {
		return nil, err
	}
	if cfg.Scope, err = parseScope(string(cfg.Scope)); err != nil {
		return nil, err
	}
	if err := cfg.PodLevel.CheckPodLevel(); err != nil {
		return nil, fmt.Errorf("topology: Config.PodLevel: %w", err)
	}
	if cfg.Policy != None {
		if err := cfg.Options.check(cfg.Machine); err != nil {
			return nil, err
		}
	}
	for i, p := range cfg.Providers {
		if err := compose.Check(p, reflect.TypeFor[Waiter](), reflect.TypeFor[Reserver]()); err != nil {
			return nil, fmt.Errorf("topology: Config.Providers[%d]: %w", i, err)
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return &Manager{cfg: cfg, turn: make(chan struct{}, 1)}, nil
}

// Admit allocates the resources of the pod's containers, all or nothing. It returns a
// *[runtime.Rejection], or an error with the cause of ctx if ctx is done. A pod that
// already has its allocations keeps them.
func (m *Manager) Admit(ctx context.Context, pod *v1.Pod) (err error) {
	begun := time.Now()
	defer func() {
		if m.cfg.Hooks.Admitted != nil {
			m.cfg.Hooks.Admitted(AdmitInfo{Pod: pod, Took: time.Since(begun), Error: err})
		}
	}()
	concerned := false
	for _, p := range m.cfg.Providers {
		if w, ok := compose.As[Waiter](p); ok {
			if why := w.Wait(pod); why != nil {
				return &runtime.Rejection{Reason: ReasonUnexpected, Message: why.Error(), Deferred: true, Err: why}
			}
		}
		concerned = concerned || p.Concerns(pod)
	}
	if !concerned {
		return nil
	}
	held, err := m.reserve(ctx, pod)
	if err != nil {
		return err
	}
	for _, p := range m.cfg.Providers {
		r, ok := compose.As[Reserver](p)
		if !ok {
			continue
		}
		if err := r.Complete(ctx, pod); err != nil {
			if !held {
				m.Free(pod.UID)
			}
			return rejection(ctx, err)
		}
	}
	return nil
}

// reserve allocates the resources of the pod while no other pod is allocated any. It reports whether
// the pod had allocations before; otherwise all are released after an error.
func (m *Manager) reserve(ctx context.Context, pod *v1.Pod) (held bool, err error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return false, fmt.Errorf("topology: admit pod %s/%s: %w", pod.Namespace, pod.Name, context.Cause(ctx))
	}
	held = m.holds(pod.UID)
	if err = m.allocate(ctx, pod); err != nil && !held {
		m.Free(pod.UID)
	}
	return held, err
}

func (m *Manager) holds(uid types.UID) bool {
	for _, p := range m.cfg.Providers {
		if p.Holds(uid) {
			return true
		}
	}
	return false
}

// Free releases all allocations of a pod.
func (m *Manager) Free(uid types.UID) {
	for _, p := range m.cfg.Providers {
		p.Free(uid)
	}
}

func (m *Manager) allocate(ctx context.Context, pod *v1.Pod) error {
	where := Any()
	if m.cfg.Policy != None && m.cfg.Scope == PodScope {
		var admitted bool
		if where, admitted = m.merge(pod, nil); !admitted {
			return m.affinityRejection(pod)
		}
	}
	for c := range podspec.Containers(pod) {
		if m.cfg.Policy != None && m.cfg.Scope == ContainerScope {
			var admitted bool
			if where, admitted = m.merge(pod, c); !admitted {
				return m.affinityRejection(pod)
			}
		}
		for _, p := range m.cfg.Providers {
			allocate := p.Allocate
			if r, ok := compose.As[Reserver](p); ok {
				allocate = r.Reserve
			}
			if err := allocate(ctx, pod, c, where); err != nil {
				return rejection(ctx, err)
			}
		}
	}
	return nil
}

// merge merges the hints of the providers.
func (m *Manager) merge(pod *v1.Pod, c *v1.Container) (Hint, bool) {
	var all []Hints
	for _, p := range m.cfg.Providers {
		all = append(all, p.Hints(pod, c))
	}
	return Merge(m.cfg.Machine, m.cfg.Policy, m.cfg.Options, all)
}

func (m *Manager) affinityRejection(pod *v1.Pod) *runtime.Rejection {
	message := "Resources cannot be allocated with Topology locality"
	switch level := m.cfg.PodLevel; {
	case !podspec.HasPodResources(pod):
	case level == PodScope:
		message = "Pod Scope pod with pod-level resources failed admission under pod-scope topology manager"
	case level == ContainerScope:
		message = "Pod Scope pod with pod-level resources failed admission with a container-level topology manager"
	}
	return &runtime.Rejection{Reason: reasonAffinity, Message: message}
}

// rejection returns the error of Admit for a failed allocation.
func rejection(ctx context.Context, err error) error {
	if r, ok := errors.AsType[*runtime.Rejection](err); ok {
		return r
	}
	if ctx.Err() != nil {
		return fmt.Errorf("topology: allocate: %w", context.Cause(ctx)) // canceled, not failed
	}
	return &runtime.Rejection{Reason: ReasonUnexpected, Message: fmt.Sprintf("Allocate failed due to %v, which is unexpected", err), Err: err}
}
