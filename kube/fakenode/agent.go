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

// An agent is one node: its object and lease, and its pods on a runtime in memory.
type agent struct {
	of      *Nodes
	number  int
	spec    Node
	runtime *runtimetest.Runtime

	node   *node.Node
	pods   *client.Pods
	sink   *client.Statuses
	events *client.Events // nil: none
	whole  *core.Agent

	ready chan struct{} // closed when the node has said that it is ready

	mu       sync.Mutex // guards the fields below
	err      error      // what went wrong last with the node's object
	health   error      // why it is to be not ready
	declared map[types.UID]*declared
	timers   map[string]*time.Timer // by container ID: when it is looked after again; nil: no more
}

// newAgent makes node number i.
func newAgent(of *Nodes, i int, spec Node) (*agent, error) {
	a := &agent{
		of: of, number: i, spec: spec, ready: make(chan struct{}), err: errNothing,
		declared: map[types.UID]*declared{}, timers: map[string]*time.Timer{},
	}
	a.runtime = &runtimetest.Runtime{Backoff: of.cfg.Backoff, Decide: a.decide, Address: of.address}
	if err := a.wireNode(); err != nil {
		return nil, err
	}
	return a, a.wirePods()
}

// wireNode makes what keeps the node's object.
func (a *agent) wireNode() (err error) {
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
		Period:  cfg.Period, LeaseDuration: cfg.LeaseDuration,
		Record: record, Logger: cfg.Logger,
		Hooks: node.Hooks{
			Ready:   func(time.Duration) { close(a.ready) },
			Updated: func(_ bool, err error) { a.failed(err) },
			Renewed: a.failed,
		},
	})
	return err
}

// wirePods makes what runs the pods.
func (a *agent) wirePods() (err error) {
	cfg, conn, logger := &a.of.cfg, a.of.conn, a.of.cfg.Logger
	pods := client.PodsConfig{Client: conn.API, NodeName: a.spec.Name, Logger: logger}
	pods.Hooks.Recovered = func() { a.whole.Status().Retry() }
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
		return a.pods.Run(ctx, func(list []*v1.Pod) { set(a.adopt(list)) })
	})
	a.whole, err = core.New(core.Config{
		NodeName: a.spec.Name, Runtime: a.runtime, Sink: a.sink,
		Sources:    map[string]podsource.PodSource{podsource.APISource: source},
		Subsystems: core.Subsystems{Admitters: podworker.Admitters{podworker.AdmitFunc(a.admit)}},
		HostIPs:    func() []string { return []string{a.address()} },
		Record:     record, Logger: logger,
		Adjust: core.Adjust{
			Status:  func(c *status.Config) { c.Probes = a.probed },
			Workers: func(c *podworker.Config) { c.Retry = cfg.Retry },
		},
	})
	return err
}

// run is the node's life.
func (a *agent) run(ctx context.Context) error {
	defer a.rest()
	runs := []func(context.Context) error{a.node.Run, a.sink.Run, a.whole.Run}
	if a.events != nil {
		runs = append(runs, a.events.Run)
	}
	return together(ctx, runs...)
}

// admit rejects pods that cannot be run, and those whose behaviour cannot be read:
// their status then says what is wrong.
func (a *agent) admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	if _, err := a.of.cfg.behaviours(pod); err != nil {
		return &runtime.Rejection{Reason: "UnknownBehaviour", Message: err.Error()}
	}
	is := admission.Node{Name: a.spec.Name, OS: "linux", Labels: a.spec.Labels, Allocatable: a.spec.Capacity}
	if o := a.node.Object(); o != nil {
		is.Labels, is.Taints = o.Labels, o.Spec.Taints
	}
	for _, failure := range admission.Check(pod, a.alive(pod), is) {
		return &failure.Rejection
	}
	return nil
}

// alive returns the other pods of the node, but for those that are over.
func (a *agent) alive(but *v1.Pod) []*v1.Pod {
	return slices.DeleteFunc(a.whole.Loop().Pods(), func(pod *v1.Pod) bool { return pod.UID == but.UID || over(pod) })
}

// failed keeps the last trouble with the node's object.
func (a *agent) failed(err error) {
	if err == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *agent) trouble() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// address of the node.
func (a *agent) address() string {
	i := a.number + 1
	return fmt.Sprintf("172.%d.%d.%d", 16+i>>16&15, i>>8&255, i&255)
}
