package cluster

import (
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime"
)

// Metrics are the metrics of a node that are related to its cluster.
type Metrics struct {
	client clientMetrics
	server serverMetrics

	startup, registration, rest prometheus.Gauge
	statuses, leases            *prometheus.CounterVec
	authRequests                *prometheus.CounterVec
	authDuration                *prometheus.HistogramVec
	clientCert, serverCert      prometheus.Counter
	watchErrors, dropped, wrote prometheus.Counter

	registered atomic.Int64 // nanoseconds that registration took
}

// New adds the metrics to m. It must be called once for m.
func New(m *metrics.Metrics) (*Metrics, error) {
	if m == nil {
		return nil, errors.New("cluster: there are no Metrics to be served with")
	}
	s := m.Set()
	c := new(Metrics)
	c.client.declare(s)
	c.server.declare(s)
	c.declare(s)
	return c, s.Err()
}

func (c *Metrics) declare(s *family.Set) {
	c.startup = s.Gauge("node.Hooks.Ready", "kubelet_node_startup_duration_seconds", "Duration from the start of the node until it was Ready.")
	c.registration = s.Gauge("node.Hooks.Registered", "kubelet_node_startup_registration_duration_seconds", "Duration from the start of the node until it was registered.")
	c.rest = s.Gauge("node.Hooks.Ready", "kubelet_node_startup_post_registration_duration_seconds", "Duration from the registration of the node until it was Ready.")
	c.statuses = s.Counters("node.Hooks.Updated", "kubeparts_node_status_updates_total", "Updates of the node status, by result: sent, unchanged or error.", "result")
	c.leases = s.Counters("node.Hooks.Renewed", "kubeparts_node_lease_renewals_total", "Renewals of the node lease, by result: success or error.", "result")
	c.authRequests = s.Counters("auth.Hooks.Reviewed", "kubeparts_auth_requests_total", "Token authentications (token) and authorizations (access), by result: known from the cache, asked of the API server, or error.", "of", "result")
	c.authDuration = s.Histograms("auth.Hooks.Reviewed", "kubeparts_auth_request_duration_seconds", "Duration of token and access reviews of the API server.", nil, "of")
	c.clientCert = s.Counter("certs.Config.Renewed", "kubelet_certificate_manager_client_expiration_renew_errors", "Failed renewals of the client certificate.")
	c.serverCert = s.Counter("certs.Config.Renewed", "kubelet_server_expiration_renew_errors", "Failed renewals of the serving certificate.")
	c.watchErrors = s.Counter("client.PodsHooks.Failed", "kubeparts_cluster_watch_errors_total", "Failed lists and watches of pods.")
	c.wrote = s.Counter("client.EventsHooks.Wrote", "kubeparts_events_written_total", "Events that were written.")
	c.dropped = s.Counter("client.EventsHooks.Dropped", "kubeparts_events_dropped_total", "Events that were not written, since there were too many or the API server rejected them.")
}

// Node returns the hooks of a node.Node (rule ns-21).
func (c *Metrics) Node() node.Hooks {
	return node.Hooks{
		Registered: func(took time.Duration, _ bool) {
			c.registered.Store(int64(took))
			c.registration.Set(took.Seconds())
		},
		Ready: func(took time.Duration) {
			c.startup.Set(took.Seconds())
			c.rest.Set(max(took-time.Duration(c.registered.Load()), 0).Seconds())
		},
		Updated: func(sent bool, err error) {
			result := "unchanged"
			switch {
			case err != nil:
				result = "error"
			case sent:
				result = "sent"
			}
			c.statuses.WithLabelValues(result).Inc()
		},
		Renewed: func(err error) { c.leases.WithLabelValues(outcome(err)).Inc() },
	}
}

func outcome(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}

// Tokens returns the hooks of auth.Tokens.
func (c *Metrics) Tokens() auth.Hooks { return c.auth("token") }

// Access returns the hooks of auth.Access.
func (c *Metrics) Access() auth.Hooks { return c.auth("access") }

func (c *Metrics) auth(of string) auth.Hooks {
	took := c.authDuration.WithLabelValues(of)
	known, asked, failed := c.authRequests.WithLabelValues(of, "known"), c.authRequests.WithLabelValues(of, "asked"), c.authRequests.WithLabelValues(of, "error")
	return auth.Hooks{Reviewed: func(cached bool, d time.Duration, err error) {
		if cached {
			known.Inc()
			return
		}
		took.Observe(d.Seconds())
		if err != nil {
			failed.Inc()
		} else {
			asked.Inc()
		}
	}}
}

// ClientRenewed is the certs.Config.Renewed of the client certificate.
func (c *Metrics) ClientRenewed(err error) {
	if err != nil {
		c.clientCert.Inc()
	}
}

// ServerRenewed is the certs.ServingConfig.Renewed of the serving certificate.
func (c *Metrics) ServerRenewed(err error) {
	if err != nil {
		c.serverCert.Inc()
	}
}

// Pods returns the hooks of client.Pods.
func (c *Metrics) Pods() client.PodsHooks {
	return client.PodsHooks{Failed: func(error) { c.watchErrors.Inc() }}
}

// Events returns the hooks of client.Events.
func (c *Metrics) Events() client.EventsHooks {
	return client.EventsHooks{
		Wrote:   func(runtime.Event) { c.wrote.Inc() },
		Dropped: func(runtime.Event, error) { c.dropped.Inc() },
	}
}

type serverMetrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inflight *prometheus.GaugeVec
}

func (m *serverMetrics) declare(s *family.Set) {
	labels := []string{"method", "path", "server_type", "long_running"}
	m.total = s.Counters("server.Hooks.Request", "kubelet_http_requests_total", "Requests that were served.", labels...)
	m.duration = s.Histograms("server.Hooks.Request", "kubelet_http_requests_duration_seconds", "Duration of requests.", nil, labels...)
	m.inflight = s.Gauges("server.Hooks.Started", "kubelet_http_inflight_requests", "Requests that are being served.", labels...)
}

// Server returns the hooks of a server.Server (rule sv-12).
func (c *Metrics) Server() server.Hooks {
	m := &c.server
	return server.Hooks{
		Started: func(i server.RequestInfo) {
			m.inflight.WithLabelValues(method(i.Method), i.Path, i.ServerType, strconv.FormatBool(i.LongRunning)).Inc()
		},
		Request: func(i server.RequestInfo) {
			verb, long := method(i.Method), strconv.FormatBool(i.LongRunning)
			m.inflight.WithLabelValues(verb, i.Path, i.ServerType, long).Dec()
			m.total.WithLabelValues(verb, i.Path, i.ServerType, long).Inc()
			m.duration.WithLabelValues(verb, i.Path, i.ServerType, long).Observe(i.Seconds)
		},
	}
}

// method returns the label of a method; unknown ones share a label.
func method(m string) string {
	switch m {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return m
	}
	return "other"
}
