package topology

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Provider gives a kind of resource to containers: CPUs, memory, devices. The
// Manager's methods call it, one call at a time, from their callers' goroutines.
type Provider interface {
	// Concerns reports whether the pod may get anything of this.
	Concerns(pod *v1.Pod) bool

	// Hints says from where the container could get what it asks for; for the
	// whole pod, if c is nil.
	Hints(pod *v1.Pod, c *v1.Container) Hints

	// Allocate gives the container what it asks for, if possible from the nodes
	// of the hint. What a container has already stays as it is. An error may be a
	// *runtime.Rejection, whose reason then counts.
	Allocate(ctx context.Context, pod *v1.Pod, c *v1.Container, where Hint) error

	// Free takes back all that the pod has. It may have nothing.
	Free(uid types.UID)
}

// A Waiter is a Provider that knows that what a pod asks for may come later, such
// as the devices of a plugin that has not registered yet (F-51). It returns what
// is missing, or nil.
type Waiter interface {
	Wait(pod *v1.Pod) error
}

// A Holder is a Provider that knows whether a pod has something. One that has keeps
// it, if it is asked about again and refused: it may be running with it.
type Holder interface {
	Holds(uid types.UID) bool
}

// Reasons of rejections.
const (
	ReasonAffinity   = "TopologyAffinityError"
	ReasonUnexpected = "UnexpectedAdmissionError"
)

// Config says how a [Manager] works.
type Config struct {
	// Machine, required.
	Machine *Machine

	// Policy and Scope; "" is none and container.
	Policy Policy
	Scope  Scope

	Options Options

	// Providers in the order in which they are asked: devices, CPUs, memory
	// (top-6).
	Providers []Provider

	// Logger; nil discards.
	Logger *slog.Logger

	Hooks Hooks
}

// Hooks are told what happens, for metrics (top-7). Each may be nil.
type Hooks struct {
	// Admitted is told of each pod that was asked about.
	Admitted func(AdmitInfo)
}

// AdmitInfo is what became of a pod.
type AdmitInfo struct {
	Pod   *v1.Pod
	Took  time.Duration
	Error error // *runtime.Rejection, or what ended the context; nil: admitted
}

// A Manager gives the containers of a pod what they ask for, close together as
// far as the policy wants it. Its methods may be called from any goroutine; pods
// are served one at a time.
type Manager struct {
	cfg  Config
	turn chan struct{} // held by the one who is served
}

// NewManager checks the Config.
func NewManager(cfg Config) (*Manager, error) {
	if cfg.Machine == nil {
		return nil, errors.New("topology: Config.Machine is nil")
	}
	var err error
	if cfg.Policy, err = ParsePolicy(string(cfg.Policy)); err != nil {
		return nil, err
	}
	if cfg.Scope, err = ParseScope(string(cfg.Scope)); err != nil {
		return nil, err
	}
	if cfg.Policy != None {
		if err := cfg.Options.check(cfg.Machine); err != nil {
			return nil, err
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return &Manager{cfg: cfg, turn: make(chan struct{}, 1)}, nil
}

// Admit gives a pod's containers what they ask for, all or nothing. An error is a
// *[runtime.Rejection], or says that ctx ended. A pod that has all already stays as it is.
func (m *Manager) Admit(ctx context.Context, pod *v1.Pod) (err error) {
	begun := time.Now()
	defer func() {
		if m.cfg.Hooks.Admitted != nil {
			m.cfg.Hooks.Admitted(AdmitInfo{Pod: pod, Took: time.Since(begun), Error: err})
		}
	}()
	concerned := false
	for _, p := range m.cfg.Providers {
		if w, ok := p.(Waiter); ok {
			if why := w.Wait(pod); why != nil {
				return &runtime.Rejection{Reason: ReasonUnexpected, Message: why.Error(), Deferred: true, Err: why}
			}
		}
		concerned = concerned || p.Concerns(pod)
	}
	if !concerned {
		return nil
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return fmt.Errorf("topology: admit pod %s/%s: %w", pod.Namespace, pod.Name, context.Cause(ctx))
	}
	held := m.holds(pod.UID)
	if err = m.allocate(ctx, pod); err != nil && !held {
		m.Free(pod.UID)
	}
	return err
}

func (m *Manager) holds(uid types.UID) bool {
	for _, p := range m.cfg.Providers {
		if h, ok := p.(Holder); ok && h.Holds(uid) {
			return true
		}
	}
	return false
}

// Free takes back all that a pod has.
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
			return affinityRejection()
		}
	}
	for c := range podspec.Containers(pod) {
		if m.cfg.Policy != None && m.cfg.Scope == ContainerScope {
			var admitted bool
			if where, admitted = m.merge(pod, c); !admitted {
				return affinityRejection()
			}
		}
		for _, p := range m.cfg.Providers {
			if err := p.Allocate(ctx, pod, c, where); err != nil {
				return rejection(ctx, err)
			}
		}
	}
	return nil
}

// merge asks the providers, and merges what they say.
func (m *Manager) merge(pod *v1.Pod, c *v1.Container) (Hint, bool) {
	var all []Hints
	for _, p := range m.cfg.Providers {
		all = append(all, p.Hints(pod, c))
	}
	return Merge(m.cfg.Machine, m.cfg.Policy, m.cfg.Options, all)
}

func affinityRejection() *runtime.Rejection {
	return &runtime.Rejection{Reason: ReasonAffinity, Message: "Resources cannot be allocated with Topology locality"}
}

// rejection returns the error of Admit for a failed allocation (top-5).
func rejection(ctx context.Context, err error) error {
	if r, ok := errors.AsType[*runtime.Rejection](err); ok {
		return r
	}
	if ctx.Err() != nil {
		return fmt.Errorf("topology: allocate: %w", context.Cause(ctx)) // called off, not failed
	}
	return &runtime.Rejection{Reason: ReasonUnexpected, Message: fmt.Sprintf("Allocate failed due to %v, which is unexpected", err), Err: err}
}
