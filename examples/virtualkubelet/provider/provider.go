package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Config says what a Provider works with.
type Config struct {
	// Runtime runs the pods. Required. If it is a runtime.Execer, exec probes work.
	Runtime runtime.Runtime

	// Admit says which pods may run. Nil: all of them.
	Admit podworker.Admitter

	// AdoptWithin is how long pods that ran before the Provider did are left alone
	// until virtual-kubelet has named them all. Zero: a minute.
	AdoptWithin time.Duration

	// Record takes events about pods. Nil: nobody reads them.
	Record func(runtime.Event)

	// Logger; nil discards.
	Logger *slog.Logger
}

// A Provider is the pod half of a virtual-kubelet provider. Its methods may be called
// from any goroutine, and none of them waits for a pod.
type Provider struct {
	cfg    Config
	wanted podsource.Memory
	agent  *agent.Agent

	mu      sync.Mutex
	pods    map[types.UID]*v1.Pod      // that virtual-kubelet has named, with the status said last
	earlier map[types.UID]*runtime.Pod // that ran before, and were not named yet
	notify  func(*v1.Pod)
}

// New checks cfg and returns a Provider that does nothing before Run.
func New(cfg Config) (*Provider, error) {
	if cfg.Runtime == nil {
		return nil, errors.New("provider: Config.Runtime is nil")
	}
	if cfg.AdoptWithin == 0 {
		cfg.AdoptWithin = time.Minute
	}
	p := &Provider{cfg: cfg, pods: map[types.UID]*v1.Pod{}, notify: func(*v1.Pod) {}}
	var err error
	if p.agent, err = newAgent(p); err != nil {
		return nil, fmt.Errorf("provider: %w", err)
	}
	return p, nil
}

// newAgent returns the agent that runs p.wanted and reports to p.
func newAgent(p *Provider) (*agent.Agent, error) {
	cfg := agent.Config{
		Runtime: p.cfg.Runtime, Sink: sink{p}, Record: p.cfg.Record, Logger: p.cfg.Logger,
		Sources: map[string]podsource.PodSource{podsource.APISource: &p.wanted},
		Probes:  prober.Handlers{HTTPGet: prober.HTTPGet{}, TCPSocket: prober.TCPSocket{}},
	}
	if execer, ok := p.cfg.Runtime.(runtime.Execer); ok {
		cfg.Probes.Exec = prober.Exec{Runtime: execer}
	}
	if p.cfg.Admit != nil {
		cfg.Admitters = podworker.Admitters{p.cfg.Admit}
	}
	return agent.New(cfg)
}

// Run works on the pods until ctx ends, or the runtime can't be listed at the start.
// What runs then goes on.
func (p *Provider) Run(ctx context.Context) error {
	there, err := p.cfg.Runtime.Pods(ctx)
	if err != nil {
		return fmt.Errorf("provider: what runs already: %w", err)
	}
	p.mu.Lock()
	p.earlier = map[types.UID]*runtime.Pod{}
	for _, pod := range there {
		if p.pods[pod.UID] == nil {
			p.earlier[pod.UID] = pod
		}
	}
	p.showLocked()
	p.mu.Unlock()
	adopt := time.AfterFunc(p.cfg.AdoptWithin, func() { // who is not named by now is wanted by nobody
		p.mu.Lock()
		defer p.mu.Unlock()
		clear(p.earlier)
		p.showLocked()
	})
	defer adopt.Stop()

	return p.agent.Run(ctx)
}

// showLocked hands the whole set on, as soon as it is whole: a pod that runs and is
// not in the first one would be ended.
func (p *Provider) showLocked() {
	if p.earlier == nil || len(p.earlier) > 0 {
		return
	}
	pods := make([]*v1.Pod, 0, len(p.pods))
	for _, pod := range p.pods {
		pods = append(pods, pod)
	}
	p.wanted.Set(pods...)
}

// want takes a pod in, or a newer version of it; the status is what was said last.
func (p *Provider) want(pod *v1.Pod) {
	pod = pod.DeepCopy()
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.pods[pod.UID]; old != nil {
		pod.Status = old.Status
	}
	p.pods[pod.UID] = pod
	delete(p.earlier, pod.UID)
	p.showLocked()
}

// A sink takes statuses, and tells virtual-kubelet of them.
type sink struct{ p *Provider }

// UpdatePodStatus implements status.StatusSink.
func (s sink) UpdatePodStatus(_ context.Context, pod *v1.Pod, said v1.PodStatus) error {
	s.p.mu.Lock()
	known := s.p.pods[pod.UID]
	if known == nil {
		s.p.mu.Unlock()
		return nil
	}
	known = known.DeepCopy()
	known.Status = said
	s.p.pods[pod.UID] = known
	notify := s.p.notify
	s.p.mu.Unlock()
	notify(known.DeepCopy())
	return nil
}

// DeletePod implements status.StatusSink: nothing of the pod is left. That its
// containers have ended was said before, and has virtual-kubelet delete the object.
func (s sink) DeletePod(_ context.Context, pod *v1.Pod) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	delete(s.p.pods, pod.UID)
	s.p.showLocked()
	return nil
}

// ended returns pod as one whose end is asked for.
func ended(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	if pod.DeletionTimestamp == nil {
		pod.DeletionTimestamp = new(metav1.Now())
	}
	if pod.DeletionGracePeriodSeconds == nil {
		pod.DeletionGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
	}
	return pod
}
