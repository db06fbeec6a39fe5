package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/status"
)

// kubeletVersion is what the node says that its pods can rely on.
const kubeletVersion = "v1.36.0+kubeparts"

// clusterOptions are about being a node of a cluster.
type clusterOptions struct {
	kubeconfig string // "" for an agent that stands alone
	bootstrap  string
	certDir    string
	nodeIP     string
	labels     string
	taints     string
}

func (o *clusterOptions) flags(fs *flag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file`: be a node of that cluster, with its pods beside those of --manifests")
	fs.StringVar(&o.bootstrap, "bootstrap-kubeconfig", "", "kubeconfig `file` of one who may ask for the node's certificate; used if --kubeconfig does not exist")
	fs.StringVar(&o.certDir, "cert-dir", "", "`directory` for the certificates that are asked for (default: pki below --root)")
	fs.StringVar(&o.nodeIP, "node-ip", "", "`address` of the node, or two of them, with a comma, one of each family (default: found out)")
	fs.StringVar(&o.labels, "node-labels", "", "labels of the node, as `key=value,…`")
	fs.StringVar(&o.taints, "register-with-taints", "", "taints that the node is made with, as `key=value:effect,…`")
}

func (o *clusterOptions) check() error {
	if o.kubeconfig == "" && (o.bootstrap != "" || o.labels != "" || o.taints != "" || o.nodeIP != "") {
		return errors.New("--bootstrap-kubeconfig, --node-ip, --node-labels and --register-with-taints are for nodes of a cluster: --kubeconfig is missing")
	}
	return nil
}

// A cluster is the agent's place in one. A nil *cluster is an agent that stands
// alone: all methods may be called, and change nothing.
type cluster struct {
	spec      node.Spec
	addresses node.AddressConfig
	logger    *slog.Logger

	conn     *client.Connection
	pods     *client.Pods
	statuses *client.Statuses
	mirrors  *client.Mirrors
	events   *client.Events
	objects  *client.Objects
	node     *node.Node    // made by describe
	known    chan struct{} // closed once the node's object is known
	more     []func(context.Context) error
}

// join makes what speaks to the API server, which it does not do yet, but for
// the node's first certificate. Without --kubeconfig there is no cluster.
func join(ctx context.Context, opts options, logger *slog.Logger) (*cluster, error) {
	o := opts.cluster
	if o.kubeconfig == "" {
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
	c := &cluster{
		spec:      node.Spec{Name: opts.nodeName, Labels: labels, Taints: taints, ProvidedNodeIP: o.nodeIP},
		addresses: node.AddressConfig{NodeName: opts.nodeName}, logger: logger, known: make(chan struct{}),
	}
	for ip := range strings.SplitSeq(o.nodeIP, ",") {
		if ip == "" {
			continue
		}
		parsed := net.ParseIP(strings.TrimSpace(ip))
		if parsed == nil {
			return nil, fmt.Errorf("--node-ip: %q is no IP address", ip)
		}
		c.addresses.NodeIPs = append(c.addresses.NodeIPs, parsed)
	}
	if c.conn, err = c.connect(ctx, opts); err != nil {
		return nil, err
	}
	if c.events, err = client.NewEvents(client.EventsConfig{Client: c.conn.Events, NodeName: opts.nodeName, Logger: logger}); err != nil {
		return nil, err
	}
	if c.objects, err = client.NewObjects(client.ObjectsConfig{Client: c.conn.API, Logger: logger}); err != nil {
		return nil, err
	}
	c.pods, err = client.NewPods(client.PodsConfig{Client: c.conn.API, NodeName: opts.nodeName, Ready: c.registered, Logger: logger})
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

// connect makes the clients.
func (c *cluster) connect(_ context.Context, opts options) (*client.Connection, error) {
	return client.Connect(client.Config{Kubeconfig: opts.cluster.kubeconfig, UserAgent: "kubeparts-agent"})
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

// describe makes the node, from what the parts of the agent know.
func (c *cluster) describe(rt connected, health *podworker.Health, pleg func() error, machine node.Machine) (err error) {
	if c == nil {
		return nil
	}
	var once sync.Once
	seen := false // healthy, at some time
	facts := node.Facts{
		Addresses: c.addresses.Addresses,
		Machine:   machine,
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
		Images: func(ctx context.Context) ([]node.Image, error) {
			list, err := rt.images.ListImages(ctx, nil)
			var out []node.Image
			for _, i := range list {
				out = append(out, node.Image{ID: i.Id, Digests: i.RepoDigests, Tags: i.RepoTags, Size: int64(i.Size)})
			}
			return out, err
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
			h := node.Health{Runtime: health.Runtime(), Checks: []node.Check{{Name: "PLEG", Err: pleg()}}, Network: health.Network()}
			seen = seen || h.Runtime == nil && h.Checks[0].Err == nil && h.Network == nil
			h.Unknown = !seen
			return h
		},
	}
	c.node, err = node.New(node.Config{
		Spec: c.spec, Nodes: c.conn.Heartbeats.CoreV1().Nodes(), Leases: c.conn.Heartbeats.CoordinationV1().Leases(v1.NamespaceNodeLease),
		Setters: facts.Setters(), Refresh: health.Check, Record: c.events.Record, Logger: c.logger,
		Seen: func(*v1.Node) { once.Do(func() { close(c.known) }) },
	})
	return err
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
		if c == nil || c.node == nil || c.node.Object() == nil {
			return otherwise
		}
		var ips []string
		for _, a := range c.node.Object().Status.Addresses {
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
	if c == nil || c.node == nil || c.node.Object() == nil {
		return n
	}
	o := c.node.Object()
	n.Labels, n.Taints = o.Labels, o.Spec.Taints
	return n
}

// sink is where statuses go: to people, and to the API server.
func (c *cluster) sink(people status.StatusSink) status.StatusSink {
	if c == nil {
		return people
	}
	return status.Tee(people, c.statuses)
}

// pipeline adds what pods of a cluster need.
func (c *cluster) pipeline(cfg podworker.PipelineConfig) podworker.PipelineConfig {
	if c != nil {
		cfg.Mirrors, cfg.Objects = c.mirrors, c.objects
	}
	return cfg
}

// loop makes the loop, which in a cluster looks after mirror pods too.
func (c *cluster) loop(cfg podworker.LoopConfig) podworker.LoopConfig {
	if c != nil {
		cfg.Mirrors = c.mirrors
	}
	return cfg
}

// sources adds the API server to where pods come from.
func (c *cluster) sources(all map[string]podsource.PodSource) map[string]podsource.PodSource {
	if c != nil {
		all[podsource.APISource] = c.pods
	}
	return all
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
