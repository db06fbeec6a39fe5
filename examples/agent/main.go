// Agent is the reference agent: pods from manifests, run on a runtime, with
// every part of kubeparts wired by hand, so that you can see how, and leave out
// what you don't need.
//
// Try it, from the root of the repository; it needs no root, no daemon and no
// cluster:
//
//	$ go run ./examples/agent --runtime=process --manifests=examples/agent/pods
//	… pods from YAML files run as processes of your machine; in another shell:
//	$ curl -s http://127.0.0.1:10258/healthz
//	$ curl -s http://127.0.0.1:10258/pods | grep -E '"(name|phase|podIP)"'
//	$ curl -s http://127.0.0.1:10258/explain    # why each pod is where it is; ?output=json
//	$ curl -s http://127.x.y.z:8080/            # the IP that the line of pod web shows
//	$ touch examples/agent/pods/web.yaml        # nothing; edit it, and web is replaced
//	Ctrl-C stops the pods, then the agent. kill -9 stops the agent only: start it
//	again, and it takes over what runs.
//
// With --runtime=unix:///run/containerd/containerd.sock the same pods run as
// containers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/process"
	"github.com/kubeparts/kubeparts/status"
)

func main() {
	supervise()
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		exit(serve(os.Args[2:])) // the web server of the example pods
	}
	opts, err := parseFlags(os.Args[1:])
	if err == nil {
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

// run is the agent: what it is made of, in the order in which a pod meets it
// backwards, because each part is handed to the one that calls it.
func run(opts options) error {
	level := slog.LevelWarn
	if opts.verbose {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	// What runs containers.
	out := &printer{w: os.Stdout}
	if len(opts.ignored) > 0 {
		out.line("agent", fmt.Sprintf("warning: of %s nothing is done with: %s", opts.config, strings.Join(opts.ignored, ", ")))
	}
	ips := nodeIPs()
	hostIPs := func() []string { return ips }

	// What those tell the loop below who are made before it, and ask of it.
	inbox, pods := new(podworker.Inbox), new(view)

	rt, err := connect(ctx, opts, logger, hostIPs, pods, inbox.PodChanged, out.event)
	if err != nil {
		return err
	}
	defer func() { _ = rt.close(context.WithoutCancel(ctx)) }()
	if err := checkDNS(cri.DNS{}); err != nil { // as in the runtime's Config
		out.line("agent", fmt.Sprintf("%s: %v", podconfig.ReasonCheckLimits, err))
	}
	health, err := podworker.NewHealth(podworker.HealthConfig{Checker: rt})
	if err != nil {
		return err
	}

	// Which resources pods have been granted: what they ask for, and what a
	// manifest with a UID of its own asks for later, if the runtime can resize.
	granted, err := allocation.Open(allocation.Config{
		Dir: filepath.Join(opts.root, "allocation"), Node: allocation.NodeFacts{NoResize: rt.noResize},
		Admit: fits(thisNode(opts.nodeName, opts.kubelet.MaxPods, rt.node.allocatable)), Ready: inbox.Synced, Changed: inbox.PodChanged,
		Record: out.event, Logger: logger,
	})
	if err != nil {
		return err
	}

	// What happens in the runtime comes from the pleg.
	changes, err := pleg.New(pleg.Config{
		Runtime: rt,
		Handle: func(e pleg.Event) {
			if e.Type != pleg.ContainerRemoved {
				inbox.PodChanged(e.UID)
			}
		},
		Logger: logger,
	})
	if err != nil {
		return err
	}

	// Whether containers are well.
	probes, err := probing(opts, rt, changes, hostIPs, out.event, logger)
	if err != nil {
		return err
	}

	// What becomes known of pods goes to people, through the printer.
	statuses, err := status.New(status.Config{
		Sink: out, HostIPs: hostIPs, Logger: logger,
		Probes: probed(probes),
		Resize: func(uid types.UID) status.Resize {
			return status.Resize{Conditions: granted.State(uid).Conditions(), PodLevel: granted.PodLevel(uid)}
		},
	})
	if err != nil {
		return err
	}

	// What is done for a pod, and when.
	pipeline, err := podworker.NewPipeline(podworker.PipelineConfig{
		Runtime: rt, Status: statuses, Admit: append(admitters(new(podconfig.Sysctls), granted, rt), rt.managers.admit(pods)), Allocation: granted, Network: health.Network, Probes: probes, Cgroups: rt.node.forPods(),
		Relist: changes.RequestRelist, Reinspect: changes.RequestReinspect, Hold: changes.Hold,
		Record: out.event, Logger: logger,
	})
	if err != nil {
		return err
	}
	workers, err := podworker.New(podworker.Config{Handler: pipeline, Statuses: changes, Pods: changes.Pods, Record: out.event, Logger: logger})
	if err != nil {
		return err
	}
	pods.workers = workers
	loop, err := podworker.NewLoop(podworker.LoopConfig{
		Workers: workers, Inbox: inbox, Sources: []string{"file"}, Garbage: garbage{rt, granted, probes, rt.node, rt.managers}, Logger: logger,
	})
	if err != nil {
		return err
	}

	// What all of them use.
	usage, err := rt.node.collector(opts, rt, podOf(loop), logger)
	if err != nil {
		return err
	}

	// Which pods are wanted.
	files, err := podsource.NewFile(podsource.FileConfig{
		Path: opts.manifests, NodeName: opts.nodeName, Logger: slog.New(slog.DiscardHandler),
		Hooks: podsource.FileHooks{Problem: out.problem, Mended: out.mended},
	})
	if err != nil {
		return err
	}
	merge, err := podsource.NewMerge(podsource.MergeConfig{
		Sources: map[string]podsource.PodSource{"file": files}, Sink: loop, Record: out.event, Logger: logger,
	})
	if err != nil {
		return err
	}

	// How others see it.
	server, err := listen(opts.listen, loop, workers, statuses, []check{
		{"runtime", health.Runtime}, {"pleg", changes.Healthy}, {"network", health.Network}, {"manifests", manifestsOf(files)},
	}, page{"/stats/summary", summaryPage(usage)})
	if err != nil {
		return err
	}

	out.line("agent", fmt.Sprintf("node %s, %s, manifests from %s, state in %s", opts.nodeName, rt.name, opts.manifests, opts.root))
	out.line("agent", fmt.Sprintf("http://%s/healthz, /pods and /explain; Ctrl-C stops the pods and the agent", server.Addr))

	// Every part runs until ctx ends; the first error ends them all.
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context) error{
		health.Run, changes.Run, probes.Run, statuses.Run, granted.Run, loop.Run, server.Run,
		rt.node.Run, rt.managers.Run, usage.Run, watchOOM(opts.nodeName, out.event, logger),
		func(ctx context.Context) error { return changes.Follow(ctx, func(e pleg.Event) { probes.Look(e.UID) }) },
		func(ctx context.Context) error { return probes.Follow(ctx, matters(inbox.PodChanged, pipeline.Probed)) },
	} {
		group.Go(func() error { return part(ctx) })
	}
	sources, stopSources := context.WithCancel(ctx)
	defer stopSources()
	sourcesStopped := make(chan struct{})
	group.Go(func() error {
		defer close(sourcesStopped)
		return merge.Run(sources)
	})
	end := ending{
		workers: workers, loop: loop, statuses: statuses, out: out, seen: changes.Healthy,
		noMorePods: func() { stopSources(); <-sourcesStopped },
	}
	group.Go(func() error {
		defer stop()
		return end.untilStopped(ctx, opts.leave)
	})
	return group.Wait()
}
