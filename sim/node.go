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

	"github.com/kubeparts/kubeparts/internal/runonce"
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

// A Node is an agent in memory: source, merge, loop, workers, pipeline, runtime,
// pleg, status and sink, wired as examples/agent wires them. Its methods may be
// called from any goroutine.
type Node struct {
	cfg      NodeConfig
	ran      runonce.Guard
	pods     *store
	told     *status.MemorySink
	statuses *status.Manager
	changes  *pleg.Generator
	health   *podworker.Health // nil: the runtime does not tell
	workers  *podworker.Workers
	loop     *podworker.Loop
	merge    *podsource.Merge

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
	if err := n.wire(cfg, status.Tee(sinks...)); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return n, nil
}

// wire makes the parts, backwards: each is handed to the one that calls it.
func (n *Node) wire(cfg NodeConfig, sink status.StatusSink) (err error) {
	n.statuses, err = status.New(status.Config{Sink: sink, Probes: n.probed, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	n.changes, err = pleg.New(pleg.Config{
		Runtime: cfg.Runtime, Logger: cfg.Logger,
		Handle: func(e pleg.Event) {
			cfg.noticed(e)
			if e.Type != pleg.ContainerRemoved {
				cfg.later("Handle", e.UID, func() { n.loop.PodChanged(e.UID) })
			}
		},
	})
	if err != nil {
		return err
	}
	network := func() error { return nil }
	if checker, ok := cfg.Runtime.(runtime.Checker); ok {
		if n.health, err = podworker.NewHealth(podworker.HealthConfig{Checker: checker}); err != nil {
			return err
		}
		network = n.health.Network
	}
	pipeline, err := podworker.NewPipeline(podworker.PipelineConfig{
		Runtime: cfg.Runtime, Status: pacedReporter{n.statuses, cfg.pace}, Network: network, Admit: cfg.Admit,
		Relist: n.changes.RequestRelist, Reinspect: n.changes.RequestReinspect, Record: cfg.Record, Logger: cfg.Logger,
	})
	if err != nil {
		return err
	}
	n.workers, err = podworker.New(podworker.Config{
		Handler: pipeline, Statuses: pacedStatuses{n.changes, cfg.pace}, Pods: n.changes.Pods,
		Jitter: cfg.Jitter, Hooks: cfg.Hooks, Record: cfg.Record, Logger: cfg.Logger,
	})
	if err != nil {
		return err
	}
	var names []string
	for name := range cfg.Sources {
		names = append(names, name)
	}
	slices.Sort(names)
	garbage, _ := cfg.Runtime.(runtime.GarbageCollector)
	n.loop, err = podworker.NewLoop(podworker.LoopConfig{Workers: n.workers, Sources: names, Garbage: garbage, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	n.merge, err = podsource.NewMerge(podsource.MergeConfig{Sources: cfg.Sources, Sink: pacedSink{n.loop, cfg.pace}, Record: cfg.Record, Logger: cfg.Logger})
	return err
}

// Run runs the agent until ctx is done, or a part of it fails. Containers keep
// running afterwards. A second call returns an error.
func (n *Node) Run(ctx context.Context) error {
	if err := n.ran.Enter("sim: Node"); err != nil {
		return err
	}
	defer n.stopTimers()
	if n.health != nil {
		n.health.First(ctx)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{n.changes.Run, n.statuses.Run, n.loop.Run, n.merge.Run} {
		group.Go(func() error { return run(ctx) })
	}
	if n.cfg.follow != nil {
		group.Go(func() error { return n.changes.Follow(ctx, n.cfg.follow) })
	}
	if n.health != nil {
		group.Go(func() error { return n.health.Run(ctx) })
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
	return n.workers.Kill(uid, opts)
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
func (n *Node) States() []podworker.PodState { return n.workers.States() }

// Healthy returns what is wrong with the runtime, as far as the node noticed.
func (n *Node) Healthy() error {
	err := n.changes.Healthy()
	if n.health != nil {
		err = errors.Join(n.health.Runtime(), n.health.Network(), err)
	}
	return err
}
