package fakenode

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/admission"
	core "github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// An agent is one node: its object and lease, and its pods on an in-memory runtime.
type agent struct {
	of      *Nodes
	number  int
	spec    Node
	runtime *runtimetest.Runtime

	node   *node.Node
	pods   *client.Pods
	sink   *client.Statuses
	events *client.Events // nil if disabled
	agent  *core.Agent

	ready chan struct{} // closed when the node was reported as ready

	mu        sync.Mutex // guards the fields below
	err       error      // last error of the node status or lease
	health    error      // the reason why the node is not ready; set by SetHealth
	behaviors map[types.UID]*podBehavior
	timers    map[string]*time.Timer // by container ID; nil after the end of run
}

// newAgent constructs node number i.
func newAgent(of *Nodes, i int, spec Node) (*agent, error) {
	a := &agent{
		of: of, number: i, spec: spec, ready: make(chan struct{}), err: errNone,
		behaviors: map[types.UID]*podBehavior{}, timers: map[string]*time.Timer{},
	}
	a.runtime = &runtimetest.Runtime{Backoff: of.cfg.Backoff, Decide: a.decide, Address: of.address}
	if err := a.newNode(); err != nil {
		return nil, err
	}
	return a, a.newPods()
}

// newNode constructs the manager of the Node object and its lease.
func (a *agent) newNode() (err error) {
	cfg, conn := &a.of.cfg, a.of.conn
	record := func(runtime.Event) {}
	if !cfg.NoEvents {
		a.events, err = client.NewEvents(client.EventsConfig{Client: conn.Events, NodeName: a.spec.Name, Queue: 200, Logger: cfg.Logger})
		if err != nil {
			return err
		}
		record = a.events.Record
	}
	a.node, err = node.New(node.Config{
		Spec:    node.Spec{Name: a.spec.Name, Labels: a.spec.Labels, Taints: a.spec.Taints, OS: "linux"},
		Nodes:   conn.Heartbeats.CoreV1().Nodes(),
		Leases:  conn.Heartbeats.CoordinationV1().Leases("kube-node-lease"),
		Setters: a.facts().Setters(),
		Timing:  node.Timing{UpdatePeriod: cfg.Heartbeat.StatusPeriod, LeaseDuration: cfg.Heartbeat.LeaseDuration},
		Record:  record, Logger: cfg.Logger,
		Hooks: node.Hooks{
			Ready:   func(time.Duration) { close(a.ready) },
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
	pods.Hooks.Recovered = func() { a.agent.Status().Retry() }
	if !cfg.OwnWatches {
		pods.Feed = a.of.feed
	}
	if a.pods, err = client.NewPods(pods); err != nil {
		return err
	}
	record := func(runtime.Event) {}
	if a.events != nil {
		record = a.events.Record
	}
	if a.sink, err = client.NewStatuses(client.StatusesConfig{Client: conn.API, Pods: a.pods, Record: record, Logger: logger}); err != nil {
		return err
	}
	source := podsource.Func(func(ctx context.Context, set func([]*v1.Pod)) error {
		return a.pods.Run(ctx, func(list []*v1.Pod) { set(a.prepare(list)) })
	})
	a.agent, err = core.New(core.Config{
		NodeName: a.spec.Name, Runtime: a.runtime, Sink: a.sink,
		Sources:    map[string]podsource.PodSource{podsource.APISource: source},
		Subsystems: core.Subsystems{Admitters: podworker.Admitters{podworker.AdmitFunc(a.admit)}},
		HostIPs:    func() []string { return []string{a.address()} },
		Record:     record, Logger: logger,
		Adjust: core.Adjust{
			Status:  func(c *status.Config) { c.Facts.Probes = a.probed },
			Workers: func(c *podworker.Config) { c.Retry = cfg.Retry },
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
	return runAll(ctx, runs...)
}

// admit rejects pods that do not fit the node, and those whose behavior is invalid; the
// status of the pod has the error.
func (a *agent) admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	if _, err := a.of.cfg.behaviors(pod); err != nil {
		return &runtime.Rejection{Reason: "UnknownBehavior", Message: err.Error()}
	}
	is := admission.Node{Name: a.spec.Name, OS: "linux", Labels: a.spec.Labels, Allocatable: a.spec.Capacity}
	if o := a.node.Object(); o != nil {
		is.Labels, is.Taints = o.Labels, o.Spec.Taints
	}
	for _, failure := range admission.Check(pod, a.otherPods(pod), is) {
		return &failure.Rejection
	}
	return nil
}

// otherPods returns the other pods of the node that have not terminated.
func (a *agent) otherPods(than *v1.Pod) []*v1.Pod {
	return slices.DeleteFunc(a.agent.Loop().Pods(), func(pod *v1.Pod) bool { return pod.UID == than.UID || isTerminal(pod) })
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

// address returns the address of the node.
func (a *agent) address() string {
	i := a.number + 1
	return fmt.Sprintf("172.%d.%d.%d", 16+i>>16&15, i>>8&255, i&255)
}
