package fakenode

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	core "github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// resync is the time after which a pod is synced although nothing has changed. The runtime
// reports every change, so that it can be much longer than the minute of the kubelet.
const resync = 30 * time.Minute

// eventQueue is the maximum number of events of a node that are not written yet: four for
// each of the 110 pods that are created at the same time.
const eventQueue = 440

// An agent is the agent of a node from its start to its stop: it maintains the Node object
// and the lease, and runs the pods on the runtime of the node.
type agent struct {
	*host

	node   *node.Node
	pods   *client.Pods
	sink   *client.Statuses
	events *client.Events // nil if disabled
	record func(runtime.Event)
	agent  *core.Agent
	claims *dra.Manager // nil without drivers

	mu        sync.Mutex    // guards the fields below
	err       error         // last error of the node status or lease
	observed  chan struct{} // closed and replaced when the API server has returned the Node object
	health    error         // the reason why the node is not ready; set by Unready
	behaviors map[types.UID]*podBehavior
	timers    map[string]*time.Timer // by container ID; nil after the end of run
}

// newAgent constructs an agent of a node.
func newAgent(of *host) (*agent, error) {
	a := &agent{
		host: of, err: errNone, observed: make(chan struct{}), record: func(runtime.Event) {},
		behaviors: map[types.UID]*podBehavior{}, timers: map[string]*time.Timer{},
	}
	if err := a.newNode(); err != nil {
		return nil, err
	}
	if err := a.newClaims(); err != nil {
		return nil, err
	}
	return a, a.newPods()
}

// newNode constructs the manager of the Node object and its lease.
func (a *agent) newNode() (err error) {
	cfg, conn := &a.of.cfg, a.of.conn
	if !cfg.API.NoEvents {
		a.events, err = client.NewEvents(client.EventsConfig{Client: conn.Events, NodeName: a.spec.Name, Queue: eventQueue, Logger: cfg.Logger})
		if err != nil {
			return err
		}
		a.record = a.events.Record
	}
	a.node, err = node.New(node.Config{
		Spec:           node.Spec{Name: a.spec.Name, Labels: a.spec.Labels, Taints: a.spec.Taints, OS: "linux"},
		NoRegistration: a.adopted,
		Nodes:          a.of.nodeClient(),
		Leases:         conn.Heartbeats.CoordinationV1().Leases("kube-node-lease"),
		Setters:        a.setters(),
		Timing:         node.Timing{UpdatePeriod: cfg.Heartbeat.StatusPeriod, LeaseDuration: cfg.Heartbeat.LeaseDuration},
		Record:         a.record, Logger: cfg.Logger, Observed: func(*v1.Node) { a.wake() },
		Hooks: node.Hooks{
			Ready:   func(time.Duration) { a.setReady() },
			Updated: func(_ bool, err error) { a.setErr(err) },
			Renewed: a.setErr,
		},
	})
	return err
}

// newPods constructs the pod pipeline.
func (a *agent) newPods() (err error) {
	cfg, conn, logger := &a.of.cfg, a.of.conn, a.of.cfg.Logger
	pods := client.PodsConfig{Client: conn.API, NodeName: a.spec.Name, Logger: logger}
	pods.Recovered = func() { a.agent.Status().Retry() }
	if !cfg.API.OwnWatches {
		pods.Feed = a.of.feed
	}
	if a.pods, err = client.NewPods(pods); err != nil {
		return err
	}
	if a.sink, err = client.NewStatuses(client.StatusesConfig{Client: conn.API, Pods: a.pods, Record: a.record, Logger: logger}); err != nil {
		return err
	}
	source := podsource.Func(func(ctx context.Context, set func([]*v1.Pod)) error {
		return a.pods.Run(ctx, func(list []*v1.Pod) { set(a.prepare(ctx, list)) })
	})
	subsystems := core.Subsystems{Admitters: pipeline.Admitters{pipeline.AdmitFunc(a.admit)}}
	if a.claims != nil {
		subsystems.Claims = a.claims
	}
	a.agent, err = core.New(core.Config{
		NodeName: a.spec.Name, Runtime: recordingRuntime{a.runtime, a.record, a.prepareClaims}, Sink: pacedSink{a.sink, a.of.writes},
		Sources:    map[string]podsource.PodSource{podsource.APISource: source},
		Subsystems: subsystems,
		HostIPs:    func() []string { return []string{a.hostIP()} },
		Record:     a.record, Logger: logger,
		Adjust: []compose.Adjustment{
			compose.Adjust(func(c *status.Config) { c.Facts = append(c.Facts, a.addProbes) }),
			compose.Adjust(func(c *podworker.Config) { c.Retry, c.Resync = cfg.Retry, resync }),
		},
	})
	return err
}

// run runs the node until ctx is done.
func (a *agent) run(ctx context.Context) error {
	defer a.stopTimers()
	runs := []func(context.Context) error{a.node.Run, a.sink.Run, a.agent.Run}
	if a.events != nil {
		runs = append(runs, a.events.Run)
	}
	if a.claims != nil {
		runs = append(runs, a.claims.Run, a.publishDevices)
	}
	return runAll(ctx, runs...)
}

// admit rejects pods that do not fit the node, and those whose behavior is invalid; the
// status of the pod has the error.
func (a *agent) admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	if _, err := a.of.cfg.behaviors(pod); err != nil {
		return &runtime.Rejection{Reason: "UnknownBehavior", Message: err.Error()}
	}
	is := admission.Node{Name: a.spec.Name, OS: "linux", Labels: a.spec.Labels, Allocatable: a.spec.Capacity, ResourceClaims: a.claims != nil}
	if o := a.object(); o != nil {
		is.Labels, is.Taints = o.Labels, o.Spec.Taints
		if a.adopted {
			_, is.Allocatable = completeResources(&o.Status)
		}
	}
	for _, failure := range admission.Check(pod, a.otherPods(pod), is) {
		return &failure.Rejection
	}
	return nil
}

// otherPods returns the other pods of the node that have not terminated.
func (a *agent) otherPods(than *v1.Pod) []*v1.Pod {
	return slices.DeleteFunc(a.agent.Table().Desired(), func(pod *v1.Pod) bool { return pod.UID == than.UID || isTerminal(pod) })
}

// setErr stores the last error of the node status or lease.
func (a *agent) setErr(err error) {
	if err == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *agent) lastErr() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// wake wakes the callers of wait.
func (a *agent) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.observed)
	a.observed = make(chan struct{})
}

// wait blocks until the Node object of the API server reports the readiness.
func (a *agent) wait(ctx context.Context, ready bool) error {
	for {
		a.mu.Lock()
		observed := a.observed
		a.mu.Unlock()
		if o := a.node.Object(); o != nil && isReady(o) == ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last error: %w", context.Cause(ctx), a.lastErr())
		case <-observed:
		}
	}
}
