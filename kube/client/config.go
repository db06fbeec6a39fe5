package client

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A Config configures the connection to an API server. The zero value is the in-cluster
// configuration.
type Config struct {
	// Kubeconfig is the path of a kubeconfig file. Empty: the service account of the pod
	// that the program runs in. Context is the name of its context; empty: the current one.
	Kubeconfig string
	Context    string

	// QPS and Burst limit the requests of Connection.API. Zero: 50 per second and a burst
	// of 300. A negative QPS means no limit. The kubelet's are 50 and 100, with which a
	// node with many pods needs seconds to report their statuses after a restart.
	QPS   float32
	Burst int

	// EventQPS and EventBurst limit the requests of Connection.Events. Zero: 50 and 100. A
	// negative QPS means no limit.
	EventQPS   float32
	EventBurst int

	// HeartbeatTimeout bounds requests of Connection.Heartbeats. Zero: 10s. A negative value
	// means no limit, for callers that bound each request. Their rate is not limited, so
	// that load does not delay heartbeats.
	HeartbeatTimeout time.Duration

	// UserAgent is the user agent of requests. Empty: "kubeparts".
	UserAgent string

	// JSON uses JSON instead of protobuf, which is larger but readable.
	JSON bool

	// Wrap wraps the transport. May be nil.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// A Connection has the clients of a node. They share connections and credentials, but have
// separate rate limits, so that they do not delay each other.
type Connection struct {
	// Config is the configuration of the clients.
	Config *rest.Config

	API        kubernetes.Interface // pods, statuses, and objects that pods refer to
	Events     kubernetes.Interface
	Heartbeats kubernetes.Interface // node status and lease

	// TokenReviews and AccessReviews are for package auth. Unauthenticated clients of
	// the node cause TokenReviews, so neither shares its limit with the other or with
	// API. Each is limited as API is.
	TokenReviews  kubernetes.Interface
	AccessReviews kubernetes.Interface
}

const protobuf = "application/vnd.kubernetes.protobuf"

// RESTConfig returns the REST configuration of cfg, for callers that modify it before
// [ConnectTo], such as for certificate rotation. It returns an error if the kubeconfig
// cannot be read, or if there is neither a kubeconfig nor a service account.
func RESTConfig(cfg Config) (*rest.Config, error) {
	if cfg.Kubeconfig == "" {
		if cfg.Context != "" {
			return nil, fmt.Errorf("client: Config.Context is %q, but there is no Config.Kubeconfig", cfg.Context)
		}
		c, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("client: no kubeconfig, and no service account of a pod: %w", err)
		}
		return c, nil
	}
	loader := &clientcmd.ClientConfigLoadingRules{ExplicitPath: cfg.Kubeconfig}
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loader, &clientcmd.ConfigOverrides{CurrentContext: cfg.Context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("client: kubeconfig %s: %w", cfg.Kubeconfig, err)
	}
	return c, nil
}

// Connect returns the clients of the server that cfg specifies. It reads files, but does
// not connect.
func Connect(cfg Config) (*Connection, error) {
	base, err := RESTConfig(cfg)
	if err != nil {
		return nil, err
	}
	return ConnectTo(base, cfg)
}

// ConnectTo returns the clients of the server of base, which is copied. It ignores
// Kubeconfig and Context of cfg.
func ConnectTo(base *rest.Config, cfg Config) (*Connection, error) {
	if base == nil {
		return nil, errors.New("client: REST configuration is nil")
	}
	c := rest.CopyConfig(base)
	c.UserAgent = or(cfg.UserAgent, "kubeparts")
	if cfg.JSON {
		c.ContentType, c.AcceptContentTypes = "application/json", "application/json"
	} else {
		c.ContentType, c.AcceptContentTypes = protobuf, protobuf+",application/json"
	}
	if cfg.Wrap != nil {
		c.Wrap(cfg.Wrap)
	}
	c.RateLimiter = nil

	conn := &Connection{Config: c}
	for _, one := range []struct {
		name    string
		client  *kubernetes.Interface
		qps     float32
		burst   int
		timeout time.Duration
	}{
		{"API", &conn.API, or(cfg.QPS, 50), or(cfg.Burst, 300), c.Timeout},
		{"events", &conn.Events, or(cfg.EventQPS, 50), or(cfg.EventBurst, 100), c.Timeout},
		{"heartbeats", &conn.Heartbeats, -1, 0, max(or(cfg.HeartbeatTimeout, 10*time.Second), 0)},
		{"token reviews", &conn.TokenReviews, or(cfg.QPS, 50), or(cfg.Burst, 300), c.Timeout},
		{"access reviews", &conn.AccessReviews, or(cfg.QPS, 50), or(cfg.Burst, 300), c.Timeout},
	} {
		c := rest.CopyConfig(c)
		c.QPS, c.Burst, c.Timeout = one.qps, one.burst, one.timeout
		made, err := kubernetes.NewForConfig(c)
		if err != nil {
			return nil, fmt.Errorf("client: create client for %s: %w", one.name, err)
		}
		*one.client = made
	}
	return conn, nil
}

// or returns v, or def if v is the zero value.
func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// quiet returns logger, or a logger that discards if it is nil.
func quiet(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return logger
}
