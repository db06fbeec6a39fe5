package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Config configures a Server. Routes whose part of the Config is nil or empty answer 404.
//
// Several servers may run in one process, for several nodes.
type Config struct {
	// NodeName is the name of the node that requests are authorized for. Required.
	NodeName string

	// Authenticator and Authorizer authenticate and authorize requests (auth.Chain and
	// auth.Access). Required. With auth.Anonymous and auth.AlwaysAllow every request is
	// allowed.
	Authenticator auth.Authenticator
	Authorizer    auth.Authorizer

	// Pods are the desired pods of the node. Required.
	Pods Pods

	// Runtime runs the pods. /runningpods lists its Pods. The routes of containers use
	// its optional interfaces runtime.StreamServer, StreamExecer, Attacher,
	// PortForwarder, Execer, LogReader and Checkpointer. If nil, none of these routes
	// exists.
	Runtime runtime.Runtime

	// Containers configures access to containers: logs, streams and checkpoints.
	Containers Containers

	// Node is the source of the server's responses about the node itself.
	Node Node

	// Handlers serve further paths, such as /example or /example/, for authenticated
	// clients that may access nodes/proxy of the node. A path of the kubelet's API is an
	// error.
	Handlers map[string]http.Handler

	// Debugging enables routes that can be disabled. The zero value disables all.
	Debugging Debugging

	// Trace is called when a request begins that is authorized or needs no authorization,
	// and that is served with the returned context. route is the pattern that matches its
	// path, such as /exec/{namespace}/{pod}/{container}; "" if none does. serverType is that
	// of RequestInfo. end is called with the status code after the request was answered.
	// If nil, requests are not traced.
	Trace func(r *http.Request, route, serverType string) (traced context.Context, end func(code int))

	// Hooks are called for each request.
	Hooks Hooks

	// Logger receives the errors whose cause clients do not receive. If nil, nothing is
	// logged.
	Logger *slog.Logger
}

// Node has the functions for a Server's responses about the node itself.
type Node struct {
	// Stats has the resource usage for /stats/summary: *stats.Collector. If nil, the path
	// does not exist.
	Stats Stats

	// Metrics are handlers by path: /metrics, /metrics/resource, /metrics/cadvisor,
	// /metrics/probes and /metrics/slis.
	Metrics map[string]http.Handler

	// Checks are the health checks of /healthz, in addition to ping and log.
	Checks []Check

	// Configz has the values that /configz returns, by name, such as kubeletconfig.
	Configz map[string]any

	// Statusz describes the process for /statusz. The path exists if Debugging.Handlers is
	// set.
	Statusz *Statusz

	// Flagz are the values of the process's flags, by name, for /flagz. Confidential
	// values must be masked. The path exists if Debugging.Handlers is set.
	Flagz map[string]string

	// Logs is the directory that /logs/ serves: the FS of an os.Root for /var/log, which,
	// unlike os.DirFS, does not follow links out of the directory. Files that are neither
	// regular nor directories are never opened.
	Logs fs.FS

	// ServiceLogs writes the logs of services of the node, for queries of /logs/, such as
	// Journal. If it is nil, or returns errors.ErrUnsupported before it has written
	// anything, the log files of the services in Logs are used.
	ServiceLogs func(ctx context.Context, q LogQuery, w io.Writer) error
}

// Stats has the resource usage of the node and its pods. With an error the methods may return
// the part that could be read. They must be safe for concurrent use.
type Stats interface {
	Summary(ctx context.Context, fresh bool) (*statsapi.Summary, error) // called with fresh false
	CPUAndMemory(ctx context.Context) (*statsapi.Summary, error)
}

// Containers configures access to containers.
type Containers struct {
	// Logs configures /containerLogs.
	Logs ContainerLogs

	// StreamHosts are further hosts, as IP addresses or names, at which a
	// runtime.StreamServer may serve streams. Loopback addresses and those of this machine
	// are always allowed; streams at any other host are refused.
	StreamHosts []string

	// StreamIdleTimeout is the time after which an idle stream of /exec, /attach and
	// /portForward is closed (streamingConnectionIdleTimeout). Zero: 4h. A negative value
	// disables it.
	StreamIdleTimeout time.Duration

	// CheckpointDir is the directory in which /checkpoint writes archives: checkpoints in
	// the root directory of the kubelet. Empty: /checkpoint answers 404.
	CheckpointDir string
}

// Pods are the desired pods of a node, with their current statuses. Implementations must
// be safe for concurrent use; the server does not modify the returned pods.
type Pods interface {
	// Pods returns all pods, including static pods, in no particular order.
	Pods() []*v1.Pod

	// Pod returns the pod with a name.
	Pod(namespace, name string) (*v1.Pod, bool)
}

// A Check is a health check of /healthz.
type Check struct {
	Name  string
	Check func() error // returns nil if healthy
}

// Debugging enables routes (rule sv-6).
type Debugging struct {
	// Handlers enables /run, /exec, /attach, /portForward, /containerLogs, /runningpods,
	// /debug and /logs (enableDebuggingHandlers). The fields below have no effect without.
	Handlers bool

	// SystemLogs enables /logs (enableSystemLogHandler), and NodeLogQuery its queries
	// (enableSystemLogQuery).
	SystemLogs, NodeLogQuery bool

	// Profiling enables /debug/pprof (enableProfilingHandler), and Flags /debug/flags
	// (enableDebugFlagsHandler).
	Profiling, Flags bool

	// SetVerbosity sets the verbosity of logs for PUT /debug/flags/v, as with klog: 0 logs
	// least, 10 everything. If nil, the route does not exist.
	SetVerbosity func(level int)
}

// Hooks are called by a Server. Each may be nil. They must not block.
type Hooks struct {
	// Request is called after a request was answered.
	Request func(RequestInfo)

	// Started is called when a request begins. Code and Seconds are zero.
	Started func(RequestInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Request, o.Request)
		compose.Add(&h.Started, o.Started)
	}
	return h
}

// A RequestInfo describes a request with the labels of the kubelet's metrics.
type RequestInfo struct {
	Method      string
	Path        string // first segment; two segments below /metrics; "other" for unknown paths (rule sv-12)
	ServerType  string // readonly or readwrite
	LongRunning bool
	Code        int
	Seconds     float64
}

func (c *Config) check() error {
	switch {
	case c.NodeName == "":
		return errors.New("server: Config.NodeName is empty")
	case c.Authenticator == nil:
		return errors.New("server: Config.Authenticator is nil")
	case c.Authorizer == nil:
		return errors.New("server: Config.Authorizer is nil")
	case c.Pods == nil:
		return errors.New("server: Config.Pods is nil")
	}
	for path, h := range c.Node.Metrics {
		if first := firstSegment(path); first != "metrics" || path != "/metrics" && !plain(strings.TrimPrefix(path, "/metrics/")) || h == nil {
			return fmt.Errorf("server: Config.Node.Metrics: %q is not a path below /metrics, or has no handler", path)
		}
	}
	for path, h := range c.Handlers {
		if _, reserved := areas[firstSegment(path)]; reserved || h == nil || len(path) < 2 || path[0] != '/' || strings.ContainsAny(path, "{} ") {
			return fmt.Errorf("server: Config.Handlers: %q is a path of the kubelet's API, is invalid, or has no handler", path)
		}
	}
	names := map[string]bool{"ping": true, "log": true}
	for _, check := range c.Node.Checks {
		if names[check.Name] || check.Check == nil || !plain(check.Name) {
			return fmt.Errorf("server: Config.Node.Checks: %q is a duplicate name, is not a path segment, or has no Check", check.Name)
		}
		names[check.Name] = true
	}
	return nil
}

// plain reports whether name is one path segment that needs no escaping.
func plain(name string) bool {
	return name != "" && name != "." && name != ".." && url.PathEscape(name) == name && !strings.ContainsAny(name, "{}")
}
