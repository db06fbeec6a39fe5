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
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume"
)

// NodeConfig configures a Node. The zero value is a node in memory.
type NodeConfig struct {
	// Runtime runs the pods. If nil, a runtimetest.Runtime without back-off is used, in
	// which every container runs until it is stopped. Its runtime.Checker and
	// runtime.GarbageCollector are used if it implements them.
	Runtime runtime.Runtime

	// Sources of pods, by name. If nil, the pods are those of Set, Add and Delete;
	// otherwise these methods have no effect on the agent.
	Sources map[string]podsource.PodSource

	// Static are the names of the sources whose pods are static, as in agent.Config.
	Static []string

	// Sink receives statuses before Status and Wait return them. If nil, only these do.
	Sink status.Sink

	// ReadyAfter returns the time after its start at which the declared probes of a
	// container succeed. If nil, the Runtime's method of that name is used, as
	// runtimetest.Runtime has one; without it, they succeed at once.
	ReadyAfter func(c runtime.ContainerStatus) time.Duration

	// Admit admits pods. If nil, all pods are admitted.
	Admit pipeline.Admitter

	// Hooks and Record are those of podworker; nil values mean its defaults.
	Hooks  podworker.Hooks
	Record func(runtime.Event)

	// Seed makes the node repeatable in a bubble; see "Guarantees and limits" in the
	// package documentation. Steps between its components, and calls of the Runtime and
	// of the Sink, take up to 125 µs each, and the jitter of podworker is drawn from Seed. If
	// nil, steps take no time, and their order at one instant is not defined.
	Seed *uint64

	// Logger receives the logs. If nil, they are discarded.
	Logger *slog.Logger

	// jitter is that of podworker; if nil, it is drawn from Seed, or podworker's without a Seed.
	jitter func(d time.Duration) time.Duration

	// probes are run by a prober.Manager whose random numbers are those of spread. If
	// zero, there is no prober and ReadyAfter is used.
	probes prober.Handlers
	spread func() float64

	// volumes, images, claims and allocated are run with the node; nil: none. Unused images
	// are removed when collect receives a value.
	volumes   *volume.Manager
	images    *imagegc.Manager
	claims    *dra.Manager
	collect   <-chan struct{}
	allocated *allocation.Manager
	table     *podworker.Table // nil: a new one

	pace       pace // of a simulation; nil: nothing takes time
	later      later
	onEvent    func(pleg.Event)
	onSynced   func(uid types.UID) // SyncPod of the pod has returned; nil: not observed
	onFollowed func(pleg.Event)    // on a goroutine of its own, which it may block; nil: there is no follower
}

// A Node is an agent.Agent in memory, with its source, runtime and sink. Its methods
// may be called from any goroutine.
type Node struct {
	cfg      NodeConfig
	ran      runonce.Guard
	pods     *store
	statuses *status.MemorySink
	agent    *agent.Agent
	seeded   *seeded // nil: without a seed

	mu          sync.Mutex
	readyTimers map[string]*time.Timer // by container ID: when its probes pass
}

// NewNode makes a node for cfg. It starts nothing.
func NewNode(cfg NodeConfig) (*Node, error) {
	if cfg.Runtime == nil {
		cfg.Runtime = new(runtimetest.Runtime)
	}
	var seeds *seeded
	if cfg.Seed != nil {
		seeds = newSeeded(*cfg.Seed)
		cfg.pace, cfg.later, cfg.onEvent = seeds.pace, seeds.later, func(pleg.Event) {}
		if cfg.jitter == nil {
			cfg.jitter = seeds.jitter
		}
	}
	if cfg.pace == nil {
		cfg.pace = func(string, types.UID) {}
		cfg.later = func(_ string, _ types.UID, do func()) { do() }
		cfg.onEvent = func(pleg.Event) {}
	}
	if cfg.ReadyAfter == nil {
		if r, ok := compose.As[interface {
			ReadyAfter(runtime.ContainerStatus) time.Duration
		}](cfg.Runtime); ok {
			cfg.ReadyAfter = r.ReadyAfter
		} else {
			cfg.ReadyAfter = func(runtime.ContainerStatus) time.Duration { return 0 }
		}
	}
	n := &Node{cfg: cfg, pods: newStore(), statuses: new(status.MemorySink), readyTimers: map[string]*time.Timer{}, seeded: seeds}
	if cfg.Sources == nil {
		source := storeSource{store: n.pods}
		if seeds != nil { // pods that are added at one instant are in the same list
			source.list = func(_ context.Context, list func()) error {
				seeds.pace("List", "")
				list()
				return nil
			}
		}
		cfg.Sources = map[string]podsource.PodSource{podsource.APISource: source}
	}
	sinks := []status.Sink{n.statuses, n.pods}
	if cfg.Sink != nil {
		sinks = []status.Sink{cfg.Sink, n.statuses, n.pods}
	}
	sink := status.Tee(sinks...)
	if seeds != nil {
		sink = pacedStatusSink{sink, seeds.pace}
	}
	var err error
	if n.agent, err = n.newAgent(cfg, sink); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return n, nil
}

// newAgent returns the agent of n, with a latency on each connection between its
// components.
func (n *Node) newAgent(cfg NodeConfig, sink status.Sink) (*agent.Agent, error) {
	c := agent.Config{
		Runtime: cfg.Runtime, Sources: cfg.Sources, Static: cfg.Static, Sink: sink, Subsystems: agent.Subsystems{Probes: cfg.probes}, Record: cfg.Record, Logger: cfg.Logger,
		Adjust: []compose.Adjustment{
			compose.Adjust(func(c *pleg.Config) {
				if n.seeded != nil {
					c.Runtime = n.seeded.lister(c.Runtime)
				}
				handle := c.Handle
				c.Handle = func(e pleg.Event) {
					cfg.onEvent(e)
					cfg.later("Handle", e.UID, func() { handle(e) })
				}
			}),
			compose.Adjust(func(c *prober.Config) { c.Schedule.Rand = cfg.spread }),
			compose.Adjust(func(c *status.Config) {
				if cfg.probes.Exec == nil {
					c.Facts = append(c.Facts, n.addProbeResults)
				}
			}),
			compose.Adjust(func(c *pipeline.Config) {
				if n.seeded != nil {
					c.Runtime = pacedRuntime{cfg.Runtime, n.seeded.pace}
				}
				c.Status = pacedReporter{c.Status, cfg.pace}
				if c.Resources.Allocation != nil {
					c.Resources.Allocation = pacedAllocation{c.Resources.Allocation, cfg.pace}
				}
				if c.Probes != nil {
					c.Probes = pacedProbes{c.Probes, cfg.pace}
				}
				if cfg.onSynced != nil {
					c.Runtime = observedRuntime{c.Runtime, cfg.onSynced}
				}
			}),
			compose.Adjust(func(c *podworker.Config) {
				c.Handler = pacedHandler{c.Handler, cfg.pace}
				c.StatusCache = pacedStatuses{c.StatusCache, cfg.pace}
				c.Hooks = cfg.Hooks
				if cfg.jitter != nil {
					c.Jitter = func(_ types.UID, d time.Duration) time.Duration { return cfg.jitter(d) }
				}
			}),
			compose.Adjust(func(c *podsource.MergeConfig) { c.Sink = pacedSink{c.Sink, cfg.pace} }),
		},
	}
	c.Table = cfg.table
	if cfg.images != nil {
		c.Subsystems.Images = cfg.images
	}
	if cfg.volumes != nil {
		c.Subsystems.Volumes = cfg.volumes
	}
	if cfg.claims != nil {
		c.Subsystems.Claims = cfg.claims
	}
	if cfg.Admit != nil {
		c.Subsystems.Admitters = pipeline.Admitters{cfg.Admit}
	}
	if cfg.allocated != nil {
		c.Subsystems.Allocation, c.Subsystems.Admitters = cfg.allocated, append(c.Subsystems.Admitters, cfg.allocated)
	}
	return agent.New(c)
}

// Run runs the agent until ctx is done, then returns nil, or until a component fails.
// Containers keep running afterwards. A second call returns an error.
func (n *Node) Run(ctx context.Context) error {
	if err := n.ran.Enter("sim: Node"); err != nil {
		return err
	}
	defer n.stopTimers()
	if n.seeded != nil {
		defer context.AfterFunc(ctx, func() { close(n.seeded.ended) })()
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.agent.Run(ctx) })
	if n.cfg.volumes != nil {
		group.Go(func() error { return n.cfg.volumes.Run(ctx) })
	}
	if n.cfg.allocated != nil {
		group.Go(func() error { return n.cfg.allocated.Run(ctx) })
	}
	if n.cfg.claims != nil {
		group.Go(func() error { return n.cfg.claims.Run(ctx) })
	}
	if n.cfg.images != nil {
		group.Go(func() error { return n.cfg.images.Run(ctx) })
		group.Go(func() error { return n.collectImages(ctx) })
	}
	if n.cfg.onFollowed != nil {
		group.Go(func() error { return n.agent.PLEG().Follow(ctx, n.cfg.onFollowed) })
	}
	return group.Wait()
}

// Set replaces the desired pods, applying the defaults of the API server. Pods that
// are not among them are removed at once, as by a forced deletion. Of a pod that
// exists, labels, annotations and the spec are updated. The error is that of
// [Node.Add].
func (n *Node) Set(pods ...*v1.Pod) error {
	for _, old := range n.pods.list(false) {
		if !slices.ContainsFunc(pods, func(p *v1.Pod) bool { return p.UID == old.UID }) {
			n.pods.remove(old.UID)
		}
	}
	return n.Add(pods...)
}

// Add is Set without removing others. A pod whose namespace and name belong to a
// pod with another UID is not added, as an API server rejects it; the error names each
// such pod.
func (n *Node) Add(pods ...*v1.Pod) error {
	var errs []error
	for _, pod := range pods {
		pod = manifest.Default(pod)
		if n.pods.create(pod) {
			continue
		}
		changed := n.pods.update(pod.UID, func(p *v1.Pod) bool {
			p.Labels, p.Annotations, p.Spec = pod.Labels, pod.Annotations, pod.Spec
			return true
		})
		if changed == nil {
			errs = append(errs, fmt.Errorf("sim: add pod %s with UID %s: the name belongs to a pod with another UID", fullName(pod), pod.UID))
		}
	}
	return errors.Join(errs...)
}

// Delete requests the deletion of a pod, as kubectl delete does. The pod is removed
// once the agent has cleaned it up. Nil graceSeconds means the pod's own grace period.
func (n *Node) Delete(uid types.UID, graceSeconds *int64) { n.pods.delete(uid, graceSeconds) }

// Evict kills a pod, as an eviction manager does. The channel is closed when none of the
// pod's containers runs.
func (n *Node) Evict(uid types.UID, opts podworker.KillOptions) <-chan podworker.Outcome {
	outcome := n.agent.Kill(uid, opts)
	if n.seeded == nil {
		return outcome
	}
	later := make(chan podworker.Outcome, 1)
	go func() {
		defer close(later)
		o := <-outcome
		n.seeded.pace("Evict", uid) // the caller's next call is at another instant
		later <- o
	}()
	return later
}

// Pods returns copies of the pods of Set and Add that have not been removed, with their
// last reported status, sorted by name.
func (n *Node) Pods() []*v1.Pod {
	pods := n.pods.list(false)
	for i, pod := range pods {
		pods[i] = pod.DeepCopy()
	}
	return pods
}

// Status returns the last reported status of the pod, and whether there is one.
func (n *Node) Status(uid types.UID) (v1.PodStatus, bool) { return n.statuses.Status(uid) }

// Wait blocks until the status of the pod satisfies condition, which is called with the
// current status and each later one, and returns it. It returns an error if ctx is done.
func (n *Node) Wait(ctx context.Context, uid types.UID, condition func(v1.PodStatus) bool) (v1.PodStatus, error) {
	s, err := n.statuses.Wait(ctx, uid, condition)
	if n.seeded != nil {
		n.seeded.pace("Wait", uid) // the caller's next call is at another instant
	}
	return s, err
}

// States returns the state of each pod worker, with its next action.
func (n *Node) States() []podworker.PodState { return n.agent.Table().States() }

// Healthy returns the failed health checks of the agent, joined; nil if it is healthy.
func (n *Node) Healthy() error {
	err := n.agent.PLEG().Healthy()
	if health := n.agent.Health(); health != nil {
		err = errors.Join(health.Runtime(), health.Network(), err)
	}
	return err
}
