package fakenode

import (
	"context"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A host is the machine of a node. It outlives its agent, which stops when the node fails
// and is replaced when it recovers.
type host struct {
	of      *Nodes
	number  int
	spec    Node
	adopted bool // another client has created the object
	runtime *runtimetest.Runtime
	ready   chan struct{} // closed when the node was first reported as ready
	once    sync.Once     // of ready

	checkpoint state.Memory // of the resource claims that are prepared

	hostMu   sync.Mutex // guards the fields below; locked before that of the agent
	now      *agent
	stop     context.CancelFunc // of the agent; nil if it was not started
	stopped  chan struct{}      // closed when the agent has stopped
	restart  chan struct{}      // capacity 1; the agent must be started
	failed   bool
	draining bool
}

// newHost constructs node number i.
func newHost(of *Nodes, i int, spec Node, adopted bool) (_ *host, err error) {
	h := &host{of: of, number: i, spec: spec, adopted: adopted, ready: make(chan struct{}), restart: make(chan struct{}, 1)}
	decide := func(pod *v1.Pod, c *v1.Container) *fake.Behavior { return h.current().decide(pod, c) }
	h.runtime = &runtimetest.Runtime{Backoff: of.cfg.Backoff, Decide: decide, Address: of.address}
	h.now, err = newAgent(h)
	return h, err
}

// run runs the agents of the node until ctx is done.
func (h *host) run(ctx context.Context) error {
	for {
		run, stop := context.WithCancel(ctx)
		stopped := make(chan struct{})
		h.hostMu.Lock()
		a := h.now
		h.stop, h.stopped = stop, stopped
		h.hostMu.Unlock()
		err := a.run(run)
		stop()
		close(stopped)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-h.restart:
		}
	}
}

// current returns the agent that runs, has stopped, or starts next.
func (h *host) current() *agent {
	h.hostMu.Lock()
	defer h.hostMu.Unlock()
	return h.now
}

func (h *host) hasFailed() bool {
	h.hostMu.Lock()
	defer h.hostMu.Unlock()
	return h.failed
}

// fail stops the agent, and then the containers.
func (h *host) fail() error {
	h.hostMu.Lock()
	stop, stopped, failed := h.stop, h.stopped, h.failed
	h.failed = stop != nil
	h.hostMu.Unlock()
	switch {
	case stop == nil:
		return fmt.Errorf("node %s is not running", h.spec.Name)
	case failed:
		return fmt.Errorf("node %s has failed already", h.spec.Name)
	}
	stop()
	<-stopped // afterwards no request of the node is in progress
	for _, s := range h.current().agent.Table().States() {
		h.runtime.Crash(s.UID)
	}
	return nil
}

// recover makes the node healthy, with a new agent if it has failed. It returns the agent.
func (h *host) recover() (*agent, error) {
	h.hostMu.Lock()
	defer h.hostMu.Unlock()
	if !h.failed {
		h.now.setHealth(nil)
		return h.now, nil
	}
	a, err := newAgent(h)
	if err != nil {
		return nil, err
	}
	h.now, h.failed, h.stop = a, false, nil
	h.restart <- struct{}{} // does not block: run receives it before the next failure
	return a, nil
}

// setReady closes ready.
func (h *host) setReady() { h.once.Do(func() { close(h.ready) }) }

// address returns the address of the node.
func (h *host) address() string {
	if e := h.of.endpoint(h.spec.Name); e.Address != "" {
		return e.Address
	}
	i := h.number + 1
	return fmt.Sprintf("172.%d.%d.%d", 16+i>>16&15, i>>8&255, i&255)
}

func isReady(n *v1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
}
