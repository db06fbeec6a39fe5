package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

// A Config configures a Provider. Runtime is required. The fields that agent.Config has
// as well have the same meaning.
type Config struct {
	// Runtime runs the pods. Its optional interfaces LogReader or LogStreamer,
	// StreamExecer or Execer, Attacher and PortForwarder enable the methods Logs, Exec,
	// Attach and PortForward; Execer enables exec probes.
	Runtime runtime.Runtime

	// NodeName is the name of the node in events about the node.
	NodeName string

	// Admitters decide, in this order, whether a new pod may run. Nil: every pod may.
	Admitters pipeline.Admitters

	// Volumes mounts the volumes of pods. Nil: pods have no volumes.
	Volumes pipeline.Volumes

	// Cgroups creates the cgroups of pods. Nil: the runtime does.
	Cgroups pipeline.Cgroups

	// Probes run the probes of containers. Of the zero value, HTTPGet and TCPSocket
	// connect from this process, and Exec uses the runtime; gRPC probes need
	// prober/grpcprobe.
	Probes prober.Handlers

	// HostIPs returns the addresses of the node, the primary one first. It must not
	// block. Nil: they are not known.
	HostIPs func() []string

	// AdoptWithin is how long virtual-kubelet may take to pass the pods that ran
	// before this process. Zero: a minute; negative: no time. If it is too short, running
	// pods are terminated and created again.
	AdoptWithin time.Duration

	// Record is called with the events of pods and of the node. It must not block.
	// Nil: events are discarded.
	Record func(runtime.Event)

	// Adjust changes the configuration of single parts of the agent.
	Adjust []compose.Adjustment

	// Logger; if nil, logs are discarded.
	Logger *slog.Logger
}

// A Provider runs the pods that virtual-kubelet passes to it. New constructs it.
type Provider struct {
	cfg     Config
	log     *slog.Logger
	desired podsource.Memory
	agent   *agent.Agent
	logs    *logread.Reader
	ran     atomic.Bool   // Run was called
	listed  chan struct{} // closed when earlier is set

	mu      sync.Mutex // guards the fields below
	pods    map[types.UID]*entry
	earlier map[types.UID]*runtime.Pod // running before this process and not passed yet; nil: not listed yet
	notify  func(*v1.Pod)
}

// An entry is a pod that virtual-kubelet passed, with the status reported last.
type entry struct {
	pod      *v1.Pod // never modified in place
	replaced bool    // by a newer pod with the same name
}

// New returns a Provider. It starts nothing and does not call the runtime. It returns an
// error if Runtime is nil or a part of the agent rejects its configuration.
func New(cfg Config) (*Provider, error) {
	if cfg.Runtime == nil {
		return nil, errors.New("provider: Config.Runtime is nil")
	}
	if err := compose.Check(cfg.Runtime, reflect.TypeFor[runtime.Execer](), reflect.TypeFor[runtime.StreamExecer](), reflect.TypeFor[runtime.Attacher](), reflect.TypeFor[runtime.PortForwarder](),
		reflect.TypeFor[runtime.LogReader](), reflect.TypeFor[LogStreamer]()); err != nil {
		return nil, fmt.Errorf("provider: Config.Runtime: %w", err)
	}
	if cfg.AdoptWithin == 0 {
		cfg.AdoptWithin = time.Minute
	}
	p := &Provider{cfg: cfg, log: cfg.Logger, pods: map[types.UID]*entry{}, notify: func(*v1.Pod) {}, listed: make(chan struct{})}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if p.logs, err = logread.New(logread.Config{Logger: cfg.Logger}); err != nil {
		return nil, fmt.Errorf("provider: %w", err)
	}
	p.agent, err = agent.New(agent.Config{
		NodeName: cfg.NodeName, Runtime: cfg.Runtime, Sink: sink{p},
		Sources:    map[string]podsource.PodSource{podsource.APISource: &p.desired},
		Subsystems: agent.Subsystems{Admitters: cfg.Admitters, Volumes: cfg.Volumes, Cgroups: cfg.Cgroups, Probes: probes(cfg)},
		HostIPs:    cfg.HostIPs, Record: cfg.Record, Adjust: cfg.Adjust, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("provider: %w", err)
	}
	return p, nil
}

// probes returns the handlers of cfg, completed by the default ones.
func probes(cfg Config) prober.Handlers {
	h := cfg.Probes
	if h.HTTPGet == nil {
		h.HTTPGet = prober.HTTPGet{}
	}
	if h.TCPSocket == nil {
		h.TCPSocket = prober.TCPSocket{}
	}
	if execer, ok := compose.As[runtime.Execer](cfg.Runtime); ok && h.Exec == nil {
		h.Exec = prober.Exec{Runtime: execer}
	}
	return h
}

// Agent returns the agent that runs the pods, for statistics, eviction and diagnosis.
func (p *Provider) Agent() *agent.Agent { return p.agent }

// listRetry is the period at which the runtime is listed until it succeeds once.
const listRetry = time.Second

// Run runs the pods until ctx is done and returns nil; the pods keep running. It retries
// until the runtime lists its pods, and returns an error if a part of the agent fails or Run
// was called before.
func (p *Provider) Run(ctx context.Context) error {
	if p.ran.Swap(true) {
		return errors.New("provider: Provider.Run was called before")
	}
	for {
		err := p.adopt(ctx)
		if err == nil {
			break
		}
		p.log.Warn("Failed to list pods for adoption; will retry", "err", err)
		select {
		case <-time.After(listRetry):
		case <-ctx.Done():
			return nil
		}
	}
	expired := time.AfterFunc(p.cfg.AdoptWithin, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for uid, pod := range p.earlier {
			p.log.Warn("Running pod was not passed by virtual-kubelet; terminating", "pod", pod.Namespace+"/"+pod.Name, "podUID", uid)
		}
		clear(p.earlier)
		p.publishLocked()
	})
	defer expired.Stop()
	return p.agent.Run(ctx)
}

// adopt lists the pods that run already.
func (p *Provider) adopt(ctx context.Context) error {
	pods, err := p.cfg.Runtime.Pods(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.earlier = map[types.UID]*runtime.Pod{}
	close(p.listed)
	for _, pod := range pods {
		if p.pods[pod.UID] == nil && runs(pod) {
			p.earlier[pod.UID] = pod
		}
	}
	p.publishLocked()
	return nil
}

// runs reports whether a container of pod has not terminated. virtual-kubelet does not
// pass pods whose phase is final, so there is no use in waiting for others.
func runs(pod *runtime.Pod) bool {
	for _, c := range pod.Containers {
		if c.State != runtime.ContainerExited {
			return true
		}
	}
	return false
}

// publishLocked hands the desired pods to the agent once all running pods are among them:
// a running pod that the first set lacks would be terminated.
func (p *Provider) publishLocked() {
	if p.adoptingLocked() {
		return
	}
	pods := make([]*v1.Pod, 0, len(p.pods))
	for _, e := range p.pods {
		if !e.replaced { // a source must not have two pods of one name
			pods = append(pods, e.pod)
		}
	}
	p.desired.Set(pods...)
}

// adoptingLocked reports whether running pods may not have been passed yet.
func (p *Provider) adoptingLocked() bool { return p.earlier == nil || len(p.earlier) > 0 }

// A sink passes statuses to virtual-kubelet.
type sink struct{ p *Provider }

// UpdatePodStatus implements status.Sink.
func (s sink) UpdatePodStatus(_ context.Context, pod *v1.Pod, status v1.PodStatus) error {
	s.p.mu.Lock()
	e := s.p.pods[pod.UID]
	if e == nil {
		s.p.mu.Unlock()
		return nil
	}
	updated := e.pod.DeepCopy()
	updated.Status = status
	e.pod = updated
	replaced, notify := e.replaced, s.p.notify
	s.p.mu.Unlock()
	if !replaced {
		notify(updated.DeepCopy())
	}
	return nil
}

// DeletePod implements status.Sink. The final status has been delivered;
// virtual-kubelet deletes the object when the grace period is over.
func (s sink) DeletePod(_ context.Context, pod *v1.Pod) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	delete(s.p.pods, pod.UID)
	s.p.publishLocked()
	return nil
}
