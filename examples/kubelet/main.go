// Agent is the reference agent: pods from manifests, run on a runtime, with every
// part of kubeparts: package agent assembles the pod pipeline (pipeline.go), and the
// parts of the node are connected here.
//
// Try it, from the root of the repository; it needs no root, no daemon and no
// cluster:
//
//	$ go run ./examples/kubelet --runtime=process --manifests=examples/agent/pods
//	… pods from YAML files run as processes of your machine; in another shell:
//	$ w3m http://127.0.0.1:10258/               # or any browser: what runs here, and how it is
//	$ curl -s http://127.0.0.1:10258/healthz
//	$ curl -s http://127.0.0.1:10258/pods | grep -E '"(name|phase|podIP)"'
//	$ curl -s http://127.0.0.1:10258/explain    # why each pod is where it is; ?output=json
//	$ curl -s http://127.x.y.z:8080/            # the IP that the line of pod web shows
//	$ touch examples/agent/pods/web.yaml          # nothing; edit it, and web is replaced
//	Ctrl-C stops the pods, then the agent. kill -9 stops the agent only: start it
//	again, and it takes over what runs.
//
// With --runtime=unix:///run/containerd/containerd.sock the same pods run as
// containers; Ctrl-C or SIGTERM then leaves them running, unless --stop-pods is
// set. With --kubeconfig the agent is a node of a cluster as well; then, and with
// --config, the page is at a socket: curl --unix-socket ROOT/agent.sock http://localhost/
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/process"
)

func main() {
	supervise()
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		exit(serve(os.Args[2:])) // the web server of the example pods
	}
	opts, err := parseFlags(os.Args[1:])
	if err == nil {
		opts.shutdown.hear()
		err = run(opts)
	}
	exit(err)
}

// supervise ends here if this is not the agent: a container of the process
// runtime is looked after by this very binary, started anew.
func supervise() {
	if code, ok := process.Supervise(); ok {
		os.Exit(code)
	}
}

func exit(err error) {
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run is the agent: its parts, each handed to those that call it, and all of them
// running until somebody says stop.
func run(opts options) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	a, err := share(ctx, opts)
	if err != nil {
		return err
	}
	release, err := a.claim()
	if err != nil {
		return err
	}
	defer release()
	node, err := a.ground(ctx)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), componentTimeout)
		defer cancel()
		_ = node.rt.close(closing)
	}()
	known, err := a.watch(ctx, node)
	if err != nil {
		return err
	}
	if err := a.describeNode(ctx, node, known); err != nil {
		return err
	}
	care, err := a.care(node, known)
	if err != nil {
		return err
	}
	a.say(fmt.Sprintf("node %s, %s, pods from %s, state in %s", opts.nodeName, node.rt.name, a.cluster.from(known.local.from), opts.root))
	a.say(fmt.Sprintf("%s; Ctrl-C stops %s", care.page.where(), opts.stops()))
	for _, where := range care.kubelet.says {
		a.say(where)
	}
	known.health.First(ctx) // before the node's first status

	// Every part runs until ctx ends; the first error ends them all.
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range slices.Concat(a.cluster.parts(a.pods.loop), node.parts(a), []part{known.agent.Run}, care.parts()) {
		group.Go(func() error { return part(ctx) })
	}
	end := ending{assembly: a, agent: known.agent, leaving: node.leaving}
	group.Go(func() error { return a.underSystemd(ctx) })
	group.Go(func() error {
		defer stop()
		return end.untilStopped(ctx)
	})
	return within(ctx, componentTimeout, group.Wait)
}

// within returns the result of wait, or an error if wait has not returned a while after
// ctx ended: a component that hangs, for example in a system call on a dead network file
// system, must not keep the process.
func within(ctx context.Context, patience time.Duration, wait func() error) error {
	returned := make(chan error, 1)
	go func() { returned <- wait() }()
	select {
	case err := <-returned:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-returned:
		return err
	case <-time.After(patience):
		return fmt.Errorf("stop: a component has not returned within %v", patience)
	}
}

// A part of the agent runs until ctx ends.
type part = func(ctx context.Context) error

// A ground is what pods stand on: what runs containers, the volumes that they get,
// and the objects that both refer to; and what there is to give out.
type ground struct {
	objects *fileObjects
	volumes *volumes
	rt      connected
	granted *allocation.Manager

	images    *imageKeeper
	usage     *stats.Collector
	evictions *eviction.Manager // also admits pods by node pressure

	leaving *departure // when the machine stops
}

func (a *assembly) ground(ctx context.Context) (g ground, err error) {
	if g.objects, err = a.readObjects(); err != nil {
		return g, err
	}
	if g.volumes, err = a.makeVolumes(g.objects); err != nil {
		return g, err
	}
	if g.rt, err = a.connect(ctx, g.volumes, g.objects.forRuntime()); err != nil {
		return g, err
	}
	if err := checkDNS(dnsOf(a.opts.kubelet)); err != nil {
		a.say(fmt.Sprintf("%s: %v", podconfig.ReasonCheckLimits, err))
	}
	// Which resources pods have been granted: what they ask for, and what a
	// manifest with a UID of its own asks for later, if the runtime can resize.
	a.machine = thisNode(a.opts.nodeName, a.opts.maxPods(), g.rt.node.allocatable)
	g.granted, err = allocation.Open(allocation.Config{
		Dir: filepath.Join(a.opts.root, "allocation"), Node: g.rt.resizes(a.opts.kubelet), AllInit: true,
		Admit: admission.ForNode(func() admission.Node { return a.cluster.place(a.machine) }, a.pods.leaving), Ready: a.inbox.Synced, Changed: a.inbox.PodChanged,
		Hooks: a.count.Allocation(), Record: a.record, Logger: a.logger,
	})
	if err != nil {
		return g, err
	}
	if g.images, err = a.keepImages(ctx, g.rt); err != nil {
		return g, err
	}
	if g.usage, err = a.collector(g.rt, g.volumes); err != nil {
		return g, err
	}
	if g.evictions, err = (evictor{assembly: a, rt: g.rt, images: g.images, summary: g.usage.Summary}).manager(); err != nil {
		return g, err
	}
	g.leaving, err = a.departures()
	return g, err
}

func (g ground) parts(a *assembly) []part {
	return []part{g.objects.Run, g.volumes.Run, g.granted.Run, g.rt.node.Run, g.rt.managers.Run, g.images.Run, g.usage.Run, g.evictions.Run, g.leaving.Run, a.watchOOM(g.rt.node)}
}

// A care is how much may be logged, and how others see the node.
type care struct {
	logs    *logrotate.Rotator
	page    *statusPage
	kubelet kubelet
	metrics map[string]http.Handler // by path
}

func (a *assembly) care(g ground, k knowledge) (c care, err error) {
	if c.logs, err = a.rotation(g.rt); err != nil {
		return c, err
	}
	checks := a.count.checks(
		append(statuspage.AgentChecks(k.agent), statuspage.Check{Name: "manifests", Check: k.local.check}, statuspage.Check{Name: "evictions", Check: g.evictions.Healthy})...,
	)
	c.metrics = a.metrics(g, k, g.usage)
	if c.page, err = a.statusPage(g, k, checks, c.metrics); err != nil {
		return c, err
	}
	c.kubelet, err = a.serveKubelet(g, k, c)
	return c, err
}

func (c care) parts() []part {
	return append(c.kubelet.parts(), c.logs.Run, c.page.Run)
}
