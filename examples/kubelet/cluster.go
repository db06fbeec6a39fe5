package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/connrotation"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/kube/certs"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume"
)

// kubeletVersion is what the node says that its pods can rely on.
const kubeletVersion = "v1.36.0+kubeparts"

// clusterOptions are about being a node of a cluster.
type clusterOptions struct {
	kubeconfig string
	inCluster  bool // it is that of the pod which the agent runs in
	bootstrap  string
	certDir    string
	nodeIP     string
	nodeIPs    []net.IP // as parsed from nodeIP
	labels     string
	taints     string
	remember   bool
}

func (o *clusterOptions) flags(fs *flag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file`: be a node of that cluster, with its pods beside those of --manifests")
	fs.BoolVar(&o.inCluster, "in-cluster", false, "be a node of the cluster in which the agent itself runs as a pod, with that pod's service account")
	fs.StringVar(&o.bootstrap, "bootstrap-kubeconfig", "", "kubeconfig `file` of one who may ask for the node's certificate; used if --kubeconfig does not exist")
	fs.StringVar(&o.certDir, "cert-dir", "", "`directory` for the certificates that are asked for (default: pki below --root)")
	fs.StringVar(&o.nodeIP, "node-ip", "", "`address` of the node, or two of them, with a comma, one of each family (default: found out)")
	fs.StringVar(&o.labels, "node-labels", "", "labels of the node, as `key=value,…`")
	fs.StringVar(&o.taints, "register-with-taints", "", "taints that the node is made with, as `key=value:effect,…`")
	fs.BoolVar(&o.remember, "remember-pods", false, "go on with the pods that the cluster wanted last if the API server can't be reached when the agent starts; those it has deleted meanwhile start again until it can")
}

// on reports whether there is a cluster; else the agent stands alone.
func (o *clusterOptions) on() bool { return o.kubeconfig != "" || o.inCluster }

// check parses what needs no cluster, and returns warnings about flags that have no
// effect without one: a kubelet accepts them, so that one command line starts both.
func (o *clusterOptions) check() (warnings []string, err error) {
	if o.inCluster && (o.kubeconfig != "" || o.bootstrap != "") {
		return nil, errors.New("--in-cluster has the service account of the agent's pod; it does not go with --kubeconfig or --bootstrap-kubeconfig")
	}
	for ip := range strings.SplitSeq(o.nodeIP, ",") {
		if ip == "" {
			continue
		}
		parsed := net.ParseIP(strings.TrimSpace(ip))
		if parsed == nil {
			return nil, fmt.Errorf("--node-ip: %q is no IP address", ip)
		}
		o.nodeIPs = append(o.nodeIPs, parsed)
	}
	if o.on() {
		return nil, nil
	}
	if o.remember {
		return nil, errors.New("--remember-pods is for nodes of a cluster: --kubeconfig or --in-cluster is missing")
	}
	for flag, value := range map[string]string{"--bootstrap-kubeconfig": o.bootstrap, "--node-labels": o.labels, "--register-with-taints": o.taints} {
		if value != "" {
			warnings = append(warnings, flag+" changes nothing: there is no cluster; --kubeconfig or --in-cluster names one")
		}
	}
	slices.Sort(warnings)
	return warnings, nil
}

// A cluster is the agent's place in one. A nil *cluster is an agent that stands
// alone: all methods may be called, and change nothing.
type cluster struct {
	kubelet   kubeletconfig.KubeletConfiguration
	spec      node.Spec
	addresses node.AddressConfig
	logger    *slog.Logger
	count     *counters

	conn     *client.Connection
	pods     *client.Pods
	statuses *client.Statuses
	retry    atomic.Pointer[func()] // says again what could not be said
	was      *v1.Node               // the node's object of the time before, if it is to be remembered
	kept     *v1.Node               // as it is on record
	nodePath string                 // where that is; empty: nowhere
	mirrors  *client.Mirrors
	events   *client.Events
	objects  *client.Objects
	node     *node.Node    // made by describe
	known    chan struct{} // closed once the node's object is known
	volumes  atomic.Pointer[volume.Manager]
	storage  storage
	more     []func(context.Context) error

	closeConnections func()           // which may hang
	expires          func() time.Time // the certificate; nil: somebody else looks after it
}

// join makes what speaks to the API server, which it does not do yet, but for
// the node's first certificate.
func join(ctx context.Context, opts options, count *counters, logger *slog.Logger) (*cluster, error) {
	o := opts.cluster
	if !o.on() {
		return nil, nil
	}
	labels, err := node.ParseLabels(o.labels)
	if err != nil {
		return nil, fmt.Errorf("--node-labels: %w", err)
	}
	taints, err := node.ParseTaints(o.taints)
	if err != nil {
		return nil, fmt.Errorf("--register-with-taints: %w", err)
	}
	strategy, err := client.ParseStrategy(cmp.Or(string(opts.kubelet.ConfigMapAndSecretChangeDetectionStrategy), "Watch"))
	if err != nil {
		return nil, fmt.Errorf("configMapAndSecretChangeDetectionStrategy: %w", err)
	}
	if o.taints == "" {
		taints = opts.kubelet.RegisterWithTaints
	}
	c := &cluster{
		kubelet:   opts.kubelet,
		spec:      node.Spec{Name: opts.nodeName, Labels: labels, Taints: taints, ProvidedNodeIP: o.nodeIP, ProviderID: opts.kubelet.ProviderID},
		addresses: node.AddressConfig{NodeName: opts.nodeName}, logger: logger, count: count, known: make(chan struct{}),
	}
	c.addresses.NodeIPs = o.nodeIPs
	if o.remember {
		c.recall(opts)
	}
	if c.conn, err = c.connect(ctx, opts); err != nil {
		return nil, err
	}
	if c.events, err = client.NewEvents(client.EventsConfig{Client: c.conn.Events, NodeName: opts.nodeName, Hooks: count.api.Events(), Logger: logger}); err != nil {
		return nil, err
	}
	if c.objects, err = client.NewObjects(client.ObjectsConfig{Client: c.conn.API, Strategy: strategy, TTL: c.ttl, Changed: c.objectChanged, Logger: logger}); err != nil {
		return nil, err
	}
	c.pods, err = client.NewPods(client.PodsConfig{Client: c.conn.API, NodeName: opts.nodeName, Ready: c.registered, Hooks: count.watch(c.sayAgain), Logger: logger})
	if err != nil {
		return nil, err
	}
	c.statuses, err = client.NewStatuses(client.StatusesConfig{Client: c.conn.API, Pods: c.pods, Record: c.events.Record, Logger: logger})
	if err != nil {
		return nil, err
	}
	c.mirrors, err = client.NewMirrors(client.MirrorsConfig{Client: c.conn.API, Node: func() (metav1.OwnerReference, bool) { return c.node.Owner() }})
	return c, err
}

// connect makes the clients: of the kubeconfig file, with a certificate that is
// renewed if the agent has asked for it itself.
func (c *cluster) connect(ctx context.Context, opts options) (*client.Connection, error) {
	o := opts.cluster
	cfg := client.Config{
		Kubeconfig: o.kubeconfig, UserAgent: "kubeparts-agent",
		QPS: float32(deref(opts.kubelet.KubeAPIQPS)), Burst: int(opts.kubelet.KubeAPIBurst),
		EventQPS: limit(opts.kubelet.EventRecordQPS), EventBurst: int(opts.kubelet.EventBurst), Wrap: c.count.api.Client,
		JSON: opts.kubelet.ContentType == "application/json",
	}
	mine := certs.Config{NodeName: opts.nodeName, Dir: o.certDir, Kubeconfig: o.kubeconfig, Renewed: c.count.api.ClientRenewed, Logger: c.logger}
	if mine.Dir == "" {
		mine.Dir = filepath.Join(opts.root, "pki")
	}
	if o.bootstrap != "" {
		first, err := client.RESTConfig(client.Config{Kubeconfig: o.bootstrap})
		if err != nil {
			return nil, fmt.Errorf("--bootstrap-kubeconfig: %w", err)
		}
		mine.Bootstrap = first
		if err := certs.Bootstrap(ctx, mine); err != nil {
			return nil, err
		}
	}
	base, err := client.RESTConfig(cfg)
	if err != nil {
		return nil, err
	}
	if base.CertFile != mine.Current() {
		dialer := connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
		base.Dial, c.closeConnections = dialer.DialContext, dialer.CloseAll
		return client.ConnectTo(base, cfg)
	}
	rotation, err := certs.NewRotation(base, mine)
	if err != nil {
		return nil, err
	}
	c.closeConnections, c.expires, c.more = rotation.CloseConnections, rotation.Expires, append(c.more, rotation.Run)
	return client.ConnectTo(rotation.Config(), cfg)
}

// ttl is for how long the control plane says that objects may be cached.
func (c *cluster) ttl() time.Duration {
	if o := c.nodeObject(); o != nil {
		return client.TTLOf(o)
	}
	return 0
}

// limit is so many a second; a kubelet's 0 is no limit.
func limit(perSecond *int32) float32 {
	if perSecond != nil && *perSecond == 0 {
		return -1
	}
	return float32(deref(perSecond))
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// nodeChanged has the node's status looked at before its time.
func (c *cluster) nodeChanged() {
	if c != nil && c.node != nil {
		c.node.Update()
	}
}

// registered waits until the node's object is known.
func (c *cluster) registered(ctx context.Context) error {
	select {
	case <-c.known:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// nodeFacts are what the parts of the agent know of the machine. Those after
// machine may be nil.
type nodeFacts struct {
	runtime connected
	port    int32 // of the kubelet's API; 0: there is none
	health  *podworker.Health
	pleg    func() error
	machine node.Machine

	shutdown     func() error
	pressure     func() node.Pressure
	volumesInUse func() []v1.UniqueVolumeName
	images       func(context.Context) ([]node.Image, error)

	features runtime.Features // of the runtime

	// fresh: there is no record of devices that were given out.
	fresh bool
}

// declared returns the features that the node declares (KEP-5328). The API server and the
// scheduler require them: pods that need a feature which is missing here are not bound to
// the node, or not updated on it. As in a kubelet they are those of the runtime as it is
// when the agent starts.
func declared(resize bool, has runtime.Features) []string {
	features := []string{"ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"}
	if has.UserNamespacesHostNetwork {
		features = append(features, "UserNamespacesHostNetworkSupport")
	}
	if has.MountOptions {
		features = append(features, "VolumeBindMountOptions")
	}
	if resize {
		features = append(features, "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers")
	}
	slices.Sort(features)
	return features
}

// describe makes the node.
func (c *cluster) describe(f nodeFacts) (err error) {
	if c == nil {
		return nil
	}
	rt, health := f.runtime, f.health
	var once sync.Once
	seen := false // healthy, at some time
	c.spec.KeepDevices = !f.fresh
	facts := node.Facts{
		Addresses:    c.addresses.Addresses,
		Machine:      f.machine,
		KubeletPort:  f.port,
		Declared:     declared(rt.noResize == "", f.features),
		MaxImages:    int(deref(c.kubelet.NodeStatusMaxImages)),
		Pressure:     f.pressure,
		VolumesInUse: f.volumesInUse,
		Images:       f.images,
		Info: func(ctx context.Context) (v1.NodeSystemInfo, error) {
			info, err := node.ReadInfo(os.DirFS("/"))
			info.KubeletVersion = kubeletVersion
			var version string
			if v, verr := rt.cri.Version(ctx, ""); verr == nil {
				version = v.RuntimeVersion
			}
			info.ContainerRuntimeVersion = node.RuntimeVersion(rt.typ, version)
			return info, err
		},
		Handlers: func(ctx context.Context) ([]v1.NodeRuntimeHandler, error) {
			f, err := rt.Features(ctx)
			return handlersOf(f), err
		},
		Features: func(ctx context.Context) (*v1.NodeFeatures, error) {
			f, err := rt.Features(ctx)
			return &v1.NodeFeatures{SupplementalGroupsPolicy: &f.SupplementalGroupsPolicy}, err
		},
		Health: func() node.Health {
			h := node.Health{Runtime: health.Runtime(), Checks: []node.Check{{Name: "PLEG", Err: f.pleg()}}, Network: health.Network()}
			h.Storage, h.Warning = c.storage.Err(), rt.node.warning()
			if f.shutdown != nil {
				h.Shutdown = f.shutdown()
			}
			seen = seen || h.Runtime == nil && h.Checks[0].Err == nil && h.Network == nil
			h.Unknown = !seen
			return h
		},
	}
	if facts.Images == nil { // nobody looks after them
		facts.Images = rt.listImages
	}
	c.node, err = node.New(node.Config{
		Spec: c.spec, Nodes: c.conn.Heartbeats.CoreV1().Nodes(), Leases: c.conn.Heartbeats.CoordinationV1().Leases(v1.NamespaceNodeLease),
		Existing: c.kubelet.RegisterNode != nil && !*c.kubelet.RegisterNode,
		Period:   c.kubelet.NodeStatusUpdateFrequency.Duration,
		// The kubelet's: who says how often to look, and not how often to
		// report, wants both.
		ReportPeriod:  cmp.Or(c.kubelet.NodeStatusReportFrequency.Duration, c.kubelet.NodeStatusUpdateFrequency.Duration),
		LeaseDuration: time.Duration(c.kubelet.NodeLeaseDurationSeconds) * time.Second,
		Setters:       facts.Setters(), Refresh: health.Check, Record: c.events.Record, Unreachable: c.closeConnections, Logger: c.logger,
		Seen:  func(n *v1.Node) { c.keep(n); once.Do(func() { close(c.known) }); c.volumesAttached() },
		Hooks: c.count.node(c.heartbeat()),
	})
	return err
}

// listImages asks the runtime.
func (c connected) listImages(ctx context.Context) ([]node.Image, error) {
	list, err := c.images.ListImages(ctx, nil)
	var out []node.Image
	for _, i := range list {
		out = append(out, node.Image{ID: i.Id, Digests: i.RepoDigests, Tags: i.RepoTags, Size: int64(i.Size)})
	}
	return out, err
}

// handlersOf returns what the node says of the runtime's handlers (ns-17).
func handlersOf(f runtime.Features) []v1.NodeRuntimeHandler {
	var out []v1.NodeRuntimeHandler
	for _, name := range slices.Sorted(maps.Keys(f.Handlers)) {
		h := f.Handlers[name]
		out = append(out, v1.NodeRuntimeHandler{Name: name, Features: &v1.NodeRuntimeHandlerFeatures{
			RecursiveReadOnlyMounts: &h.RecursiveReadOnlyMounts, UserNamespaces: &h.UserNamespaces,
		}})
	}
	return out
}

// record passes events to the API server as well.
func (c *cluster) record(also func(runtime.Event)) func(runtime.Event) {
	if c == nil {
		return also
	}
	return func(e runtime.Event) {
		also(e)
		c.events.Record(e)
	}
}

// hostIPs returns the addresses of the node, as its object has them; until that
// is known, otherwise.
func (c *cluster) hostIPs(otherwise []string) func() []string {
	return func() []string {
		object := c.nodeObject()
		if object == nil {
			return otherwise
		}
		var ips []string
		for _, a := range object.Status.Addresses {
			if a.Type == v1.NodeInternalIP {
				ips = append(ips, a.Address)
			}
		}
		if len(ips) == 0 {
			return otherwise
		}
		return ips
	}
}

// runtime tells the runtime who knows what pods refer to.
func (c *cluster) runtime(cfg cri.Config) cri.Config {
	if c != nil {
		cfg.Objects, cfg.RuntimeClass = c.objects, c.objects.RuntimeClass
	}
	return cfg
}

// place is where pods are to fit, with the labels and taints that the cluster
// gave the node.
func (c *cluster) place(n admission.Node) admission.Node {
	if o := c.nodeObject(); o != nil {
		n.Labels, n.Taints = o.Labels, o.Spec.Taints
	}
	return n
}

// sink is where statuses go: to people, and to the API server.
func (c *cluster) sink(people status.StatusSink) status.StatusSink {
	if c == nil {
		return people
	}
	return status.Tee(people, c.statuses)
}

// mirrorPods returns what makes the mirror pods; nil without a cluster.
func (c *cluster) mirrorPods() podworker.Mirrors {
	if c == nil {
		return nil
	}
	return c.mirrors
}

// pipelineObjects returns what fetches the objects that pods refer to; nil without a
// cluster.
func (c *cluster) pipelineObjects() podworker.Objects {
	if c == nil {
		return nil
	}
	return c.objects
}

// sources adds the API server to where pods come from.
func (c *cluster) sources(opts options, all map[string]podsource.PodSource) (map[string]podsource.PodSource, error) {
	if c == nil {
		return all, nil
	}
	all[podsource.APISource] = c.pods
	if c.nodePath == "" {
		return all, nil
	}
	patience := awayAfter
	if c.was == nil {
		patience = math.MaxInt64 // they are recorded, but not without the node
	}
	var err error
	all[podsource.APISource], err = remembering(opts, podsource.APISource, c.pods, patience, c.logger)
	return all, err
}

// from says in words where pods come from.
func (c *cluster) from(manifests string) string {
	switch {
	case c == nil:
		return manifests
	case manifests == "":
		return c.conn.Config.Host
	}
	return manifests + " and " + c.conn.Config.Host
}

// parts are what is to run for the cluster, loop being told of static pods when
// there is a node that they can belong to.
func (c *cluster) parts(loop *podworker.Loop) []func(context.Context) error {
	if c == nil {
		return nil
	}
	return append([]func(context.Context) error{
		c.node.Run, c.statuses.Run, c.events.Run, c.objects.Run,
		func(ctx context.Context) error {
			if c.registered(ctx) == nil {
				loop.SyncStatic() // sl-65
			}
			return nil
		},
	}, c.more...)
}
