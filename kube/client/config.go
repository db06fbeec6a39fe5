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

// A Config says how to reach an API server. The zero value is for an agent
// that runs as a pod: the in-cluster configuration.
type Config struct {
	// Kubeconfig is the path of a kubeconfig file, and Context the one of its
	// contexts that is used ("": its current one). An empty path means the
	// service account of the pod that the agent runs in.
	Kubeconfig string
	Context    string

	// QPS and Burst limit the calls of Connection.API. 0 means 50 per second
	// and 300 at once, below zero means no limit (the server has its own). The
	// kubelet's are 50 and 100, with which a node that comes back takes
	// seconds to say how its pods are.
	QPS   float32
	Burst int

	// EventQPS and EventBurst limit the calls of Connection.Events. 0 means 50
	// and 100, below zero no limit.
	EventQPS   float32
	EventBurst int

	// HeartbeatTimeout ends a call of Connection.Heartbeats. 0 means 10s. Such
	// calls are not limited: a busy node is not to look dead.
	HeartbeatTimeout time.Duration

	// UserAgent names the agent in the server's logs. "" means "kubeparts".
	UserAgent string

	// JSON speaks JSON where protobuf would do: more bytes, but readable ones.
	JSON bool

	// Wrap puts a round tripper around the transport, to count or to break
	// calls. Nil: nothing.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// A Connection holds the clients of a node. They share their connections and
// credentials, but not their limits, so that no kind of call keeps another
// one waiting.
type Connection struct {
	// Config is what the clients were made from.
	Config *rest.Config

	API        kubernetes.Interface // pods, statuses, what pods refer to
	Events     kubernetes.Interface
	Heartbeats kubernetes.Interface // the node's status and lease

	// TokenReviews and AccessReviews are for package auth. Unauthenticated clients of
	// the node cause TokenReviews, so neither shares its limit with the other or with
	// API. Each is limited as API is.
	TokenReviews  kubernetes.Interface
	AccessReviews kubernetes.Interface
}

const protobuf = "application/vnd.kubernetes.protobuf"

// RESTConfig returns the configuration that cfg describes, for those who change
// it before [ConnectTo]: client certificates that rotate, a proxy.
func RESTConfig(cfg Config) (*rest.Config, error) {
	if cfg.Kubeconfig == "" {
		if cfg.Context != "" {
			return nil, fmt.Errorf("client: Config.Context is %q, but there is no Config.Kubeconfig", cfg.Context)
		}
		c, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("client: no kubeconfig file is given, and this is no pod: %w", err)
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

// Connect returns the clients for the server that cfg names. It reads files,
// and calls nobody yet.
func Connect(cfg Config) (*Connection, error) {
	base, err := RESTConfig(cfg)
	if err != nil {
		return nil, err
	}
	return ConnectTo(base, cfg)
}

// ConnectTo returns the clients for the server of base, which it copies. Of
// cfg it uses all but Kubeconfig and Context.
func ConnectTo(base *rest.Config, cfg Config) (*Connection, error) {
	if base == nil {
		return nil, errors.New("client: the REST configuration is nil")
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
		{"heartbeats", &conn.Heartbeats, -1, 0, or(cfg.HeartbeatTimeout, 10*time.Second)},
		{"token reviews", &conn.TokenReviews, or(cfg.QPS, 50), or(cfg.Burst, 300), c.Timeout},
		{"access reviews", &conn.AccessReviews, or(cfg.QPS, 50), or(cfg.Burst, 300), c.Timeout},
	} {
		c := rest.CopyConfig(c)
		c.QPS, c.Burst, c.Timeout = one.qps, one.burst, one.timeout
		made, err := kubernetes.NewForConfig(c)
		if err != nil {
			return nil, fmt.Errorf("client: make the client for %s: %w", one.name, err)
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

// quiet returns logger, or one that discards.
func quiet(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return logger
}
