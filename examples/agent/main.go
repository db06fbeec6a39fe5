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
// containers. With --kubeconfig the agent is a node of a cluster as well.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/admission"
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

	// The cluster, if there is one.
	out := &printer{w: os.Stdout}
	if len(opts.ignored) > 0 {
		out.line("agent", fmt.Sprintf("warning: of %s nothing is done with: %s", opts.config, strings.Join(opts.ignored, ", ")))
	}
	joined, err := join(ctx, opts, logger)
	if err != nil {
		return err
	}
	hostIPs, record := joined.hostIPs(nodeIPs()), joined.record(out.event)

	// What those tell the loop below who are made before it, and ask of it.
	inbox, pods := new(podworker.Inbox), new(view)

	// What runs containers, and what they refer to.
	objects, err := objectsOf(opts, logger)
	if err != nil {
		return err
	}
	// Which volumes containers get.
	var machine admission.Node
	vols, err := volumesOf(opts, joined, objects, func() v1.ResourceList { return machine.Allocatable }, record, logger)
	if err != nil {
		return err
	}
	rt, err := connect(ctx, opts, joined, vols, objects.forRuntime(), pods, logger, hostIPs, inbox.PodChanged, record)
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
	machine = thisNode(opts.nodeName, opts.kubelet.MaxPods, rt.node.allocatable)
	granted, err := allocation.Open(allocation.Config{
		Dir: filepath.Join(opts.root, "allocation"), Node: allocation.NodeFacts{NoResize: rt.noResize},
		Admit: fits(func() admission.Node { return joined.place(machine) }), Ready: inbox.Synced, Changed: inbox.PodChanged,
		Record: record, Logger: logger,
	})
	if err != nil {
		return err
	}

	// What the node has too little of.
	short, err := newPressure(opts, joined == nil, func(what string) { out.line("agent", what) })
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
	probes, err := probing(opts, rt, changes, hostIPs, record, logger)
	if err != nil {
		return err
	}

	// What becomes known of pods goes to people, through the printer, and to the
	// cluster.
	said, err := rememberStatuses(opts, logger)
	if err != nil {
		return err
	}
	statuses, err := status.New(status.Config{
		Sink: said.beside(joined.sink(out)), Earlier: said.earlier, RecursiveReadOnly: mountsRecursively(ctx, rt), HostIPs: hostIPs, Logger: logger,
		Probes: probed(probes), Health: rt.managers.health(), Record: record,
		Resize: func(uid types.UID) status.Resize {
			return status.Resize{Conditions: granted.State(uid).Conditions(), PodLevel: granted.PodLevel(uid)}
		},
	})
	if err != nil {
		return err
	}
	joined.onReturn(statuses.Retry)

	// Which images stay on the node.
	var loop *podworker.Loop
	images, err := keepImages(opts, rt, inbox.Synced, func() *podworker.Loop { return loop }, record, logger)
	if err != nil {
		return err
	}

	// What the cluster is told of this machine.
	has, fresh := rt.managers.intoNode(rt.node.machine(opts.kubelet.MaxPods))
	if err := joined.describe(nodeFacts{
		runtime: rt, health: health, pleg: changes.Healthy, machine: has, fresh: fresh,
		pressure: short.node, volumesInUse: vols.InUse, images: images.list(int(deref(opts.kubelet.NodeStatusMaxImages))),
	}); err != nil {
		return err
	}

	// What is done for a pod, and when.
	pipeline, err := podworker.NewPipeline(joined.pipeline(podworker.PipelineConfig{
		Runtime: images.over(rt), Status: statuses, Admit: slices.Concat(podworker.Admitters{short}, admitters(new(podconfig.Sysctls), granted, rt), podworker.Admitters{rt.managers.admit(pods)}), Allocation: granted, Network: health.Network, Volumes: vols, Probes: probes, Cgroups: rt.node.forPods(),
		Relist: changes.RequestRelist, Reinspect: changes.RequestReinspect, Hold: changes.Hold,
		Record: record, Logger: logger,
	}))
	if err != nil {
		return err
	}
	workers, err := podworker.New(podworker.Config{Handler: pipeline, Statuses: changes, Pods: changes.Pods, Record: record, Logger: logger})
	if err != nil {
		return err
	}
	pods.workers = workers

	// Which pods are wanted.
	local, err := sourcesOf(opts, out, logger)
	if err != nil {
		return err
	}
	wanted, err := joined.sources(opts, local.sources)
	if err != nil {
		return err
	}
	loop, err = podworker.NewLoop(joined.loop(podworker.LoopConfig{
		Workers: workers, Inbox: inbox, Sources: slices.Collect(maps.Keys(wanted)), Garbage: garbage{rt, granted, probes, vols, said}, Node: nodeRef(opts.nodeName), Logger: logger,
	}))
	if err != nil {
		return err
	}
	merge, err := podsource.NewMerge(podsource.MergeConfig{Sources: wanted, Sink: loop, Record: record, Logger: logger})
	if err != nil {
		return err
	}

	// What all of them use, and who has to go when that is too much.
	usage, err := rt.node.collector(opts, rt, podOf(loop), vols.VolumeStats, 0, logger)
	if err != nil {
		return err
	}
	// Nobody is evicted for what he used ten seconds ago.
	lately, err := rt.node.collector(opts, rt, podOf(loop), vols.VolumeStats, time.Second, logger)
	if err != nil {
		return err
	}
	evictions, err := evictor{
		opts: opts, pressure: short, rt: rt, workers: workers, loop: loop, summary: lately.Summary,
		garbage: rt, images: images.free, record: record, say: func(what string) { out.line("agent", what) }, logger: logger,
	}.manager()
	if err != nil {
		return err
	}

	// How much they may write.
	logs, err := rotation(opts.kubelet, rt, logger)
	if err != nil {
		return err
	}

	// How others see it.
	server, err := listen(opts.listen, loop, workers, statuses, []check{
		{"runtime", health.Runtime}, {"pleg", changes.Healthy}, {"network", health.Network}, {"manifests", local.check},
	}, page{"/stats/summary", summaryPage(usage)})
	if err != nil {
		return err
	}

	out.line("agent", fmt.Sprintf("node %s, %s, pods from %s, state in %s", opts.nodeName, rt.name, joined.from(local.from), opts.root))
	out.line("agent", fmt.Sprintf("http://%s/healthz, /pods and /explain; Ctrl-C stops the pods and the agent", server.Addr))

	health.First(ctx)

	// Every part runs until ctx ends; the first error ends them all.
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range append(joined.parts(loop),
		health.Run, changes.Run, probes.Run, statuses.Run, granted.Run, loop.Run, server.Run, objects.Run, images.Run, vols.Run,
		rt.node.Run, rt.managers.Run, usage.Run, evictions.Run, logs.Run, watchOOM(opts.nodeName, record, logger),
		func(ctx context.Context) error { return changes.Follow(ctx, func(e pleg.Event) { probes.Look(e.UID) }) },
		func(ctx context.Context) error { return probes.Follow(ctx, matters(inbox.PodChanged, pipeline.Probed)) },
	) {
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
