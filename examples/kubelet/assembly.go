package main

import (
	"context"
	"log/slog"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/admission"
	core "github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status/printer"
)

// An assembly is what the parts of the agent share. Each part is made by a method of
// it that takes, beside that, the parts which this one calls.
type assembly struct {
	opts    options
	logger  *slog.Logger
	out     *printer.Printer    // to users
	count   *counters           // for Prometheus
	cluster *cluster            // nil: the agent stands alone
	record  func(runtime.Event) // to people and to the cluster
	hostIPs func() []string

	// Who is told of changes, and asked about pods, by parts that are made before
	// the loop and the workers.
	inbox *podworker.Inbox
	pods  *view

	ports kubeletPorts   // of the kubelet's API
	level *slog.LevelVar // from which on things are logged
	seen  *statuspage.History

	machine admission.Node // what pods are held against; known with the runtime
}

// share makes what the parts share, and joins the cluster, if there is one.
func share(ctx context.Context, opts options) (*assembly, error) {
	level := new(slog.LevelVar)
	logger, err := newLogger(opts.kubelet, level)
	if err != nil {
		return nil, err
	}
	a := &assembly{
		opts: opts, out: &printer.Printer{W: os.Stdout}, inbox: new(podworker.Inbox), pods: new(view), level: level, seen: new(statuspage.History), logger: logger,
	}
	for _, w := range opts.warnings {
		a.say("warning: " + w)
	}
	if err = a.settle(); err != nil {
		return nil, err
	}
	if a.count, err = newCounters(opts); err != nil {
		return nil, err
	}
	if a.ports, err = openPorts(a.opts.kubelet, opts.cluster.on()); err != nil {
		return nil, err
	}
	if a.cluster, err = join(ctx, opts, a.count, a.logger); err != nil {
		return nil, err
	}
	a.hostIPs, a.record = a.cluster.hostIPs(configuredIPs(opts.cluster.nodeIPs, core.InterfaceIPs())), a.recorder(a.cluster.record(a.out.Record))
	return a, nil
}

// recorder returns what is called with events: the status page has them, and next.
func (a *assembly) recorder(next func(runtime.Event)) func(runtime.Event) {
	return func(e runtime.Event) {
		a.seen.Record(e)
		next(e)
	}
}

// say tells people something about the agent itself.
func (a *assembly) say(what string) { a.out.Printf("agent", "%s", what) }

// allocatable is what pods can have of the node; nothing until the runtime is known.
func (a *assembly) allocatable() v1.ResourceList { return a.machine.Allocatable }

// nodeRef is what events of the node are about.
func (a *assembly) nodeRef() v1.ObjectReference {
	name := a.opts.nodeName
	return v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}
