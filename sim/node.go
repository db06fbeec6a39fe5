package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// A NodeConfig says what a Node is made of. The zero value is a node in memory.
type NodeConfig struct {
	// Runtime runs the pods. Nil: a runtimetest.Runtime without back-off, in
	// which every container runs until it is stopped. Health and garbage are its
	// own if it is a runtime.Checker and a runtime.GarbageCollector.
	Runtime runtime.Runtime

	// Sources of pods, by name. Nil: the pods are those of Set, Add and Delete,
	// which do nothing else then.
	Sources map[string]podsource.PodSource

	// Sink takes statuses beside Status and Wait. Nil: nobody else does.
	Sink status.StatusSink

	// ReadyAfter returns how long after its start the probes that a container
	// declares pass. Nil: what the Runtime's method of that name says, as that
	// of runtimetest.Runtime does, and if it has none, at once.
	ReadyAfter func(c runtime.ContainerStatus) time.Duration

	// Admit says which pods may run. Nil: all of them.
	Admit podworker.Admitter

	// Jitter, Hooks and Record are those of podworker; nil values are its own.
	Jitter func(d time.Duration) time.Duration
	Hooks  podworker.Hooks
	Record func(runtime.Event)

	// Logger; nil discards.
	Logger *slog.Logger

	pace    pace // of a simulation; nil: nothing takes time
	later   later
	noticed func(pleg.Event)
	follow  func(pleg.Event) // on a goroutine of its own, as slow as it likes; nil: nobody does
}

// A Node is an agent.Agent in memory, with its source, runtime and sink. Its methods
// may be called from any goroutine.
type Node struct {
	cfg   NodeConfig
	pods  *store
	told  *status.MemorySink
	agent *agent.Agent

	mu    sync.Mutex
	ready map[string]*time.Timer // by container ID: when its probes pass
}

// NewNode makes a node for cfg. It starts nothing.
func NewNode(cfg NodeConfig) (*Node, error) {
	if cfg.Runtime == nil {
		cfg.Runtime = new(runtimetest.Runtime)
	}
	if cfg.pace == nil {
		cfg.pace = func(string, types.UID) {}
		cfg.later = func(_ string, _ types.UID, do func()) { do() }
		cfg.noticed = func(pleg.Event) {}
	}
	if cfg.ReadyAfter == nil {
		if r, ok := cfg.Runtime.(interface {
			ReadyAfter(runtime.ContainerStatus) time.Duration
		}); ok {
			cfg.ReadyAfter = r.ReadyAfter
		} else {
			cfg.ReadyAfter = func(runtime.ContainerStatus) time.Duration { return 0 }
		}
	}
	n := &Node{cfg: cfg, pods: newStore(), told: new(status.MemorySink), ready: map[string]*time.Timer{}}
	if cfg.Sources == nil {
		cfg.Sources = map[string]podsource.PodSource{podsource.APISource: storeSource{store: n.pods}}
	}
	sinks := []status.StatusSink{n.told, n.pods}
	if cfg.Sink != nil {
		sinks = []status.StatusSink{cfg.Sink, n.told, n.pods}
	}
	var err error
	if n.agent, err = n.newAgent(cfg, status.Tee(sinks...)); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return n, nil
}

// newAgent returns the agent of n, with the connections between its parts paced.
func (n *Node) newAgent(cfg NodeConfig, sink status.StatusSink) (*agent.Agent, error) {
	c := agent.Config{
		Runtime: cfg.Runtime, Sources: cfg.Sources, Sink: sink, Record: cfg.Record, Logger: cfg.Logger,
		Adjust: agent.Adjust{
			PLEG: func(c *pleg.Config) {
				handle := c.Handle
				c.Handle = func(e pleg.Event) {
					cfg.noticed(e)
					cfg.later("Handle", e.UID, func() { handle(e) })
				}
			},
			Status:   func(c *status.Config) { c.Probes = n.probed },
			Pipeline: func(c *podworker.PipelineConfig) { c.Status = pacedReporter{c.Status, cfg.pace} },
			Workers: func(c *podworker.Config) {
				c.Statuses = pacedStatuses{c.Statuses, cfg.pace}
				c.Jitter, c.Hooks = cfg.Jitter, cfg.Hooks
			},
			Merge: func(c *podsource.MergeConfig) { c.Sink = pacedSink{c.Sink, cfg.pace} },
		},
	}
	if cfg.Admit != nil {
		c.Admitters = podworker.Admitters{cfg.Admit}
	}
	return agent.New(c)
}

// Run is the agent's life: until ctx ends, or it cannot go on. Containers go on
// running afterwards. Run it once.
func (n *Node) Run(ctx context.Context) error {
	defer n.stopTimers()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.agent.Run(ctx) })
	if n.cfg.follow != nil {
		group.Go(func() error { return n.agent.PLEG().Follow(ctx, n.cfg.follow) })
	}
	return group.Wait()
}

// Set makes these the pods that are wanted, with the defaults of the API server.
// One that was wanted and is not named goes at once, as by a forced deletion. Of
// one that is wanted already labels, annotations and the spec are taken.
func (n *Node) Set(pods ...*v1.Pod) {
	for _, old := range n.pods.list(false) {
		if !slices.ContainsFunc(pods, func(p *v1.Pod) bool { return p.UID == old.UID }) {
			n.pods.drop(old.UID)
		}
	}
	n.Add(pods...)
}

// Add is Set without an end for others.
func (n *Node) Add(pods ...*v1.Pod) {
	for _, pod := range pods {
		pod = podsource.Default(pod)
		if n.pods.create(pod) {
			continue
		}
		n.pods.change(pod.UID, func(p *v1.Pod) bool {
			p.Labels, p.Annotations, p.Spec = pod.Labels, pod.Annotations, pod.Spec
			return true
		})
	}
}

// Delete asks for the end of a pod, as kubectl delete does. It is wanted no
// longer when nothing of it is left. Nil seconds: its own grace period.
func (n *Node) Delete(uid types.UID, graceSeconds *int64) { n.pods.delete(uid, graceSeconds) }

// Evict ends a pod for a reason of the node's own. The channel is closed when
// nothing of it runs any more.
func (n *Node) Evict(uid types.UID, opts podworker.KillOptions) <-chan podworker.Outcome {
	return n.agent.Workers().Kill(uid, opts)
}

// Pods returns the pods that are wanted of Set, Add and Delete, with the status
// that was told last, by name.
func (n *Node) Pods() []*v1.Pod {
	pods := n.pods.list(false)
	for i, pod := range pods {
		pods[i] = pod.DeepCopy()
	}
	return pods
}

// Status returns what was last told of the pod, and whether anything was.
func (n *Node) Status(uid types.UID) (v1.PodStatus, bool) { return n.told.Status(uid) }

// Wait returns the first status, from the present one on, of which want says
// true, or an error if ctx ends before.
func (n *Node) Wait(ctx context.Context, uid types.UID, want func(v1.PodStatus) bool) (v1.PodStatus, error) {
	return n.told.Wait(ctx, uid, want)
}

// States tells how the life of each pod stands, and what comes next: to explain
// what the node does.
func (n *Node) States() []podworker.PodState { return n.agent.Workers().States() }

// Healthy returns what is wrong with the runtime, as far as the node noticed.
func (n *Node) Healthy() error {
	err := n.agent.PLEG().Healthy()
	if health := n.agent.Health(); health != nil {
		err = errors.Join(health.Runtime(), health.Network(), err)
	}
	return err
}
