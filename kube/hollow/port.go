package hollow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/kube/server"
)

// A Port serves the kubelet's API of all nodes: pods, logs, exec, attach, port forwarding,
// statistics, resource metrics and health.
//
// All nodes have one address and each a port of its own, which is in its status. A request for
// the statistics of a node contains neither its name nor that of a pod, so that the address or the
// port must differ; a pod has one address, but 65,535 ports, and clients use the port of the
// status: the API server always, metrics-server with --kubelet-use-node-status-port. A socket that
// is not used takes a file descriptor and about 10 KB.
type Port struct {
	// IP is the address of all nodes: one of this machine or pod, at which the API server
	// reaches it. The zero value serves nothing.
	IP netip.Addr

	// Authenticator and Authorizer authenticate and authorize requests, as in package
	// kube/server. Required with IP.
	Authenticator auth.Authenticator
	Authorizer    auth.Authorizer

	// TLS configures encryption; see package kube/server. API servers require it.
	TLS server.TLSConfig
}

func (p *Port) check() error {
	switch {
	case !p.IP.IsValid():
		return nil
	case p.IP.IsUnspecified():
		return errors.New("hollow: Config.Port.IP is not the address of a machine")
	case p.Authenticator == nil:
		return errors.New("hollow: Config.Port.Authenticator is nil")
	case p.Authorizer == nil:
		return errors.New("hollow: Config.Port.Authorizer is nil")
	}
	return nil
}

// sweepPeriod is the time between two searches for sockets of nodes that are gone.
const sweepPeriod = time.Minute

// A port serves the nodes of this process.
type port struct {
	cfg      Port
	log      *slog.Logger
	sockets  *sockets
	view     func(node string) (fakenode.View, bool)
	metrics  *metrics.Metrics // encodes resource metrics; counts nothing
	listener *server.Listener
	started  time.Time
}

func newPort(cfg Port, log *slog.Logger) (*port, error) {
	p := &port{cfg: cfg, log: log, sockets: newSockets(cfg.IP), started: time.Now()}
	var err error
	if p.metrics, err = newMetrics(); err != nil {
		return nil, err
	}
	p.listener, err = server.NewListener(server.ListenerConfig{Listener: p.sockets, Handler: p, TLS: cfg.TLS, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("hollow: %w", err)
	}
	return p, nil
}

func newMetrics() (*metrics.Metrics, error) {
	m, err := metrics.New(metrics.Config{NodeName: "hollow"})
	if err != nil {
		return nil, fmt.Errorf("hollow: %w", err)
	}
	return m, nil
}

// endpoint returns the endpoint of a node. If it cannot be served, the node runs without.
func (p *port) endpoint(node string) fakenode.Endpoint {
	e, err := p.sockets.endpoint(node)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		p.log.Error("Failed to serve the kubelet API of a node; it has no port", "node", node, "err", err)
	}
	return e
}

// run serves the nodes until ctx is done.
func (p *port) run(ctx context.Context) error {
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(sweepPeriod):
				p.sockets.retain(func(node string) bool {
					_, ok := p.view(node)
					return ok
				})
			}
		}
	}()
	err := p.listener.Run(ctx)
	<-swept
	return err
}

// ServeHTTP serves a request for the node of the connection.
func (p *port) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	node := ""
	if _, ok := local.(*net.TCPAddr); ok {
		node = p.sockets.node(local)
	}
	view, ok := p.view(node)
	if !ok {
		http.Error(w, "the node is not run by this process", http.StatusNotFound)
		return
	}
	p.serve(w, r, node, view)
}

// serve serves a request for a node.
func (p *port) serve(w http.ResponseWriter, r *http.Request, node string, view fakenode.View) {
	s, err := p.server(node, view)
	if err != nil {
		p.log.Error("Failed to serve a request", "node", node, "err", err)
		http.Error(w, "the node cannot be served", http.StatusInternalServerError)
		return
	}
	s.ServeHTTP(w, r)
}

// server returns a server for one request: thousands of nodes are rarely asked at the same time,
// and a server has no state between requests.
func (p *port) server(node string, view fakenode.View) (*server.Server, error) {
	rt, stats := served{view.Runtime()}, usage{node: node, view: view, started: p.started}
	return server.New(server.Config{
		NodeName: node, Pods: view, Runtime: rt, Logger: p.log,
		Authenticator: p.cfg.Authenticator, Authorizer: p.cfg.Authorizer,
		Containers: server.Containers{Logs: server.ContainerLogs{Reader: rt}},
		Node: server.Node{
			Stats: stats, Checks: []server.Check{{Name: "syncloop", Check: view.Healthy}},
			Metrics: map[string]http.Handler{metrics.ResourcePath: p.resource(stats)},
		},
		Debugging: server.Debugging{Handlers: true},
	})
}

// resource returns the handler of /metrics/resource.
func (p *port) resource(stats usage) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		summary, err := stats.CPUAndMemory(r.Context())
		families := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return p.metrics.GatherResource(summary, err) })
		promhttp.HandlerFor(families, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
	})
}
