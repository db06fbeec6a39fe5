package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/claim"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/volume"
)

// stopTimeout bounds the return of the components after the context of Run is done: a
// system call on an unreachable network file system must not keep the process.
const stopTimeout = 15 * time.Second

// flushTimeout bounds the delivery of the last statuses.
const flushTimeout = 5 * time.Second

// A Kubelet is one node. New constructs it.
type Kubelet struct {
	agent      *agent.Agent
	page       http.Handler
	components []component
	stopping   func() // called when Run begins to stop
	cleanups   cleanups
	released   atomic.Bool // Run or Close was called
	apiAddr    net.Addr
}

// New constructs a kubelet. It locks RootDir, opens the listeners, connects to the runtime
// and reads the state in RootDir, but runs nothing. ctx bounds its calls, not the kubelet.
//
// It returns an error that names the field of cfg or of its Configuration that is invalid,
// or the subsystem that could not be constructed. It returns an error if pods run in the
// runtime or below the cgroup root that belong to another node: those that neither RootDir
// nor an earlier kubelet with this RootDir knows. Run or Close must be called.
func New(ctx context.Context, cfg Config) (*Kubelet, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	logConfiguration(ctx, cfg)
	k := new(Kubelet)
	if err := k.construct(ctx, cfg); err != nil {
		return nil, errors.Join(err, k.cleanups.run())
	}
	return k, nil
}

// construct calls the constructors of the subsystems in the order of their dependencies.
func (k *Kubelet) construct(ctx context.Context, cfg Config) error {
	release, err := claim.Take(claim.Config{
		Root: cfg.RootDir, RuntimeEndpoint: cfg.Configuration.ContainerRuntimeEndpoint, PodLogsDir: cfg.Configuration.PodLogsDir,
		CgroupRoot: claimedCgroup(cfg), Logger: cfg.Logger,
	})
	if err != nil {
		return err
	}
	k.cleanups.add(func() error { release(); return nil })
	history := new(statuspage.History)
	b := base{
		cfg: cfg, k: cfg.Configuration, nodeRef: nodeRef(cfg.NodeName), record: recordTo(cfg.Record, history.Record),
		pods: pods{new(podworker.Table)}, queues: new(queues), logger: cfg.Logger, userNamespace: newUserNamespace(cfg.Configuration),
	}
	b.shutdown = newShutdownState(cfg, b.queues)
	b.health = &podPacer{notify: b.pods.PodChanged}
	if b.metrics, err = newCounters(cfg.NodeName, cfg.Cluster.Version); err != nil {
		return err
	}
	if b.traces, err = newTraces(ctx, b); err != nil {
		return err
	}
	k.cleanups.add(b.traces.close)
	setProcessLimits(b)
	open, err := openPorts(b, cfg.clustered())
	if err != nil {
		return err
	}
	k.cleanups.add(open.close)
	if open.api != nil {
		k.apiAddr = open.api.Addr()
	}

	var joined *cluster
	var object *nodeObject
	if cfg.clustered() {
		conn, err := newConnection(ctx, b)
		if err != nil {
			return err
		}
		k.cleanups.add(conn.close)
		events, err := newEvents(conn.base(b), conn)
		if err != nil {
			return err
		}
		b.record = recordTo(b.record, events.Record)
		object = newNodeObject(b)
		if joined, err = newCluster(conn.base(b), clusterDeps{conn, events, object, volume.CanMount()}); err != nil {
			return err
		}
		k.components = append(k.components, joined.components(b)...)
	}
	fallbackIPs := configuredIPs(cfg.Host.IPs, agent.InterfaceIPs())
	hostIPs := func() []string { return object.hostIPs(fallbackIPs) }

	total, err := readCapacity(b)
	if err != nil {
		return err
	}
	files, err := newObjectFiles(b)
	if err != nil {
		return err
	}
	resourceClaims, err := newClaims(b, joined)
	if err != nil {
		return err
	}
	vols, err := newVolumes(b, joined, files, total.allocatable, cfg.Runtime.Processes, resourceClaims)
	if err != nil {
		return err
	}

	cri, err := newServices(ctx, b)
	if err != nil {
		return err
	}
	k.cleanups.add(func() error {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		return cri.close(closing)
	})
	if cri.ledger, err = openLedger(ctx, b, cri); err != nil {
		return err
	}
	managers, err := newResourceManagers(ctx, b, cri, total.reserved, resourceClaims, joined)
	if err != nil {
		return err
	}
	groups, err := newCgroups(ctx, b, cri, total, managers)
	if err != nil {
		return err
	}
	rt, err := newRuntime(ctx, b, runtimeDeps{cri, groups, managers, vols, objectsOf(joined, files), joined, hostIPs, history.Synced})
	if err != nil {
		return err
	}
	if err := refuseForeign(ctx, b, rt); err != nil {
		return err
	}
	declared := newDeclaredFeatures(ctx, b, rt, cri.noResize() == "")
	allocated, err := newAllocation(b, rt, cri.noResize(), total, object, readNode(b, joined), managers.advertises)
	if err != nil {
		return err
	}
	images, err := newImages(ctx, b, rt, cri.Processes)
	if err != nil {
		return err
	}
	usage, err := newStats(b, rt, groups, vols)
	if err != nil {
		return err
	}
	evictions, err := newEviction(b, evictionDeps{rt, groups, images, joined == nil, usage, history.EvictionPass})
	if err != nil {
		return err
	}
	from, err := newSources(b, joined)
	if err != nil {
		return err
	}
	statuses, err := newSnapshot(b, joined)
	if err != nil {
		return err
	}
	k.agent, err = newAgent(ctx, b, agentDeps{
		cluster: joined, sources: from, runtime: rt, ledger: cri.ledger, declared: declared, cgroups: groups, managers: managers, volumes: vols, allocation: allocated,
		images: images, evictions: evictions, snapshot: statuses, hostIPs: hostIPs, history: history,
	})
	if err != nil {
		return err
	}
	nodePods, err := newPodsAPI(b, k.agent)
	if err != nil {
		return err
	}
	shutdowns, err := newShutdown(b, k.agent.Status())
	if err != nil {
		return err
	}

	if joined != nil {
		n, err := newNode(joined.conn.base(b), nodeDeps{
			cluster: joined, services: cri, runtime: rt, declared: declared, agent: k.agent, cgroups: groups, managers: managers, images: images, volumes: vols,
			evictions: evictions, port: portOf(open.api),
		})
		if err != nil {
			return err
		}
		k.components = append(k.components, n.Run, b.queues.node.deliver(n.Update), b.queues.statuses.deliver(k.agent.Status().Retry))
	}
	logs, err := newLogRotator(b, rt)
	if err != nil {
		return err
	}
	kills, err := newOOMWatcher(b, groups)
	if err != nil {
		return err
	}
	var certificate serving
	if open.api != nil {
		if certificate, err = newServing(b, joined, hostIPs()); err != nil {
			return err
		}
	}
	scraped := newMetrics(b, metricsDeps{k.agent, allocated, vols, resourceClaims, usage, groups, joined, certificate})
	api, err := newServer(b, serverDeps{open, joined, k.agent, rt, groups, usage, scraped, certificate})
	if err != nil {
		return err
	}
	if k.page, err = newStatusPage(b, pageDeps{k.agent, history, cri.display, from, vols, evictions, images, usage, scraped}); err != nil {
		return err
	}
	for _, more := range [][]component{
		{b.queues.objects.deliver(func(o objectName) { vols.ObjectChanged(o.kind, o.namespace, o.name) })},
		{k.agent.Run, allocated.Run, usage.Run, evictions.Run, shutdowns.Run, logs.Run, kills},
		vols.components(), managers.components(), groups.components(), images.components(), nodePods, api,
	} {
		k.components = append(k.components, more...)
	}
	k.stopping = func() {}
	if cfg.Host.NotifySystemd {
		k.components = append(k.components, newSystemdNotifier(b, k.agent.Loop()))
		k.stopping = func() { notifySystemd(b, daemon.SdNotifyStopping) }
	}
	return nil
}

// claimedCgroup returns the parent of the cgroups that this process will manage; "" if it
// manages none.
func claimedCgroup(cfg Config) string {
	if cfg.Runtime.Processes || !*cfg.Configuration.CgroupsPerQOS || os.Geteuid() != 0 {
		return ""
	}
	return filepath.Join("/", cfg.Configuration.CgroupRoot)
}

// newAllocation constructs the manager of allocated resources, which also decides whether
// pods fit the node.
func newAllocation(b base, rt podRuntime, noResize string, total capacity, object *nodeObject, read func(context.Context) (*v1.Node, error),
	devices func(v1.ResourceName) bool,
) (*allocation.Manager, error) {
	facts := allocation.NodeConstraints{NoResize: noResize}
	if !b.cfg.Runtime.Processes { // rule al-10
		facts.StaticCPU = cpu.Policy(b.k.CPUManagerPolicy) == cpu.Static
		facts.StaticMemory = memory.Policy(b.k.MemoryManagerPolicy) == memory.Static
		facts.Swaps = rt.facts.MaySwap
	}
	cfg := allocation.Config{
		Dir: filepath.Join(b.cfg.RootDir, "allocation"), Node: facts, InitContainers: true,
		Admit: admitOn(admissionNode(b, total.allocatable), object, read, b.pods.leaving, devices), SourcesReady: b.pods.Synced, Changed: b.pods.PodChanged,
		Hooks: b.metrics.Allocation(), Record: b.record, Logger: b.logger,
	}
	if err := compose.Apply(b.cfg.Adjust, "Allocation", &cfg); err != nil {
		return nil, err
	}
	return allocation.Open(cfg)
}

// Run runs the kubelet until ctx is done and returns nil when it has stopped; the pods keep
// running, unless Drain has terminated them. Statuses that are not delivered within 5
// seconds of that are delivered by the next kubelet. Run returns the error of a component
// that fails, after it has stopped the others. It must be called once: a second call, and
// a call after Close, return an error.
func (k *Kubelet) Run(ctx context.Context) (err error) {
	if k.released.Swap(true) {
		return errors.New("kubelet: Run or Close was called before")
	}
	defer func() { err = errors.Join(err, k.cleanups.run()) }()
	if h := k.agent.Health(); h != nil {
		h.First(ctx) // before the first status of the node
	}
	return runComponents(ctx, k.components, func(ctx context.Context) {
		k.stopping()
		_ = k.agent.Status().Flush(ctx)
	})
}

// runComponents runs the components until ctx is done or one fails. They run during flush,
// which is called if ctx is done.
func runComponents(ctx context.Context, components []component, flush func(context.Context)) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, running := errgroup.WithContext(running)
	returned := make([]atomic.Bool, len(components))
	for i, c := range components {
		group.Go(func() error {
			defer returned[i].Store(true)
			return c(running)
		})
	}
	stopped := make(chan error, 1)
	go func() { stopped <- group.Wait() }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
		flushing, cancel := context.WithTimeout(running, flushTimeout)
		flush(flushing)
		cancel()
	case <-running.Done():
	}
	stop()
	select {
	case err := <-stopped:
		return err
	case <-time.After(stopTimeout):
		var left []string
		for i, c := range components {
			if !returned[i].Load() {
				left = append(left, componentName(c))
			}
		}
		return fmt.Errorf("components have not returned within %v: %s", stopTimeout, strings.Join(left, ", "))
	}
}

// componentName returns the name of the function or method, such as agent.(*Agent).Run.
func componentName(c component) string {
	return strings.TrimSuffix(path.Base(goruntime.FuncForPC(reflect.ValueOf(c).Pointer()).Name()), "-fm")
}

// Drain terminates all pods of a standalone kubelet and delivers their last statuses, as
// agent.Agent.Drain does. Run must be running. The pods of a cluster are terminated by the
// API server (kubectl drain); with one, Drain terminates them all the same, and the API
// server does not replace them while their objects exist.
func (k *Kubelet) Drain(ctx context.Context) error { return k.agent.Drain(ctx) }

// Close releases what New has acquired, if Run is not called. After Run or Close it has no
// effect, since Run releases it when it returns.
func (k *Kubelet) Close() error {
	if k.released.Swap(true) {
		return nil
	}
	return k.cleanups.run()
}

// Agent returns the agent, with the parts of the pod pipeline.
func (k *Kubelet) Agent() *agent.Agent { return k.agent }

// APIAddr returns the address of the kubelet's API, such as the one that was chosen for
// port: -1. It is nil if the API is not served.
func (k *Kubelet) APIAddr() net.Addr { return k.apiAddr }

// StatusPage returns the handler of package agent/statuspage for this kubelet: the status
// page, /healthz, /pods, /explain, /metrics and /stats/summary, without authentication and
// with hidden values of environments and annotations. It must not be exposed to untrusted
// networks.
func (k *Kubelet) StatusPage() http.Handler { return k.page }
