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

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Config says what a node can tell of itself, and who may ask. A part that is nil
// is not there: its routes answer 404 and say so.
//
// Several servers can be in one process, for several nodes.
type Config struct {
	// NodeName is the name of the node, which is what people are authorised for.
	// Required.
	NodeName string

	// Authenticator finds out who asks (auth.Chain), and Authorizer what he may do
	// (auth.Access). Required; auth.Anonymous and auth.AlwaysAllow make an open
	// server.
	Authenticator auth.Authenticator
	Authorizer    auth.Authorizer

	// Pods are those that this node knows of. Required.
	Pods Pods

	// Runtime is what runs them: its optional powers (runtime.StreamServer,
	// StreamExecer, Attacher, PortForwarder, Execer, LogReader, Checkpointer) are
	// found by type assertion, and its Pods are /runningpods. Nil: nothing of a
	// runtime is served.
	Runtime runtime.Runtime

	// Summary returns what is used, for /stats/summary: all of it, or what
	// only_cpu_and_memory asks for. With an error, what could be had.
	Summary func(ctx context.Context, onlyCPUAndMemory bool) (*statsapi.Summary, error)

	// Metrics are handlers by path: /metrics, /metrics/resource, /metrics/cadvisor,
	// /metrics/probes and /metrics/slis.
	Metrics map[string]http.Handler

	// Handlers serve further paths, such as /example or /example/, for authenticated
	// clients that may access nodes/proxy of the node. A path of the kubelet's API is an
	// error.
	Handlers map[string]http.Handler

	// Checks are asked for /healthz, beside ping and log (sv-3).
	Checks []Check

	// Configz is shown by /configz, by name: kubeletconfig.
	Configz map[string]any

	// NodeLogs is the directory that /logs/ shows: the FS of an os.Root for /var/log,
	// which follows no link out of it, as os.DirFS would. Files that are neither
	// regular nor directories are never opened.
	NodeLogs fs.FS

	// ServiceLogs writes what a service of the node has logged, for queries of /logs/
	// (NodeLogQuery): Journal. Nil: their files in NodeLogs are looked for.
	ServiceLogs func(ctx context.Context, q LogQuery, w io.Writer) error

	// CheckpointDir is where /checkpoint writes archives: checkpoints below the
	// agent's directory. Empty: there are none.
	CheckpointDir string

	// StreamHosts are further hosts, as IP addresses or names, at which a
	// runtime.StreamServer may have its streams. Loopback addresses and those of this
	// machine always will do; a runtime that names another is not followed there.
	StreamHosts []string

	// Verbosity sets how much the agent logs, for PUT /debug/flags/v, in klog's
	// numbers: 0 is little, 10 is all.
	Verbosity func(level int)

	// StreamIdle is how long a stream of /exec, /attach and /portForward may be silent:
	// streamingConnectionIdleTimeout. Zero: 4h. Below zero: for ever.
	StreamIdle time.Duration

	// ContainerLogs is how /containerLogs differs from the kubelet's.
	ContainerLogs ContainerLogs

	// Debugging are the routes that can be switched off. The zero value has them all
	// off, as sv-6 words it.
	Debugging Debugging

	// Hooks are told of requests.
	Hooks Hooks

	// Logger is told what clients are not. Nil: nobody is.
	Logger *slog.Logger
}

// Pods are the pods that a node knows of, with their statuses of the moment. It may
// be called from any goroutine; what it returns is not changed by the server.
type Pods interface {
	// Pods lists them all, static ones too, in no order.
	Pods() []*v1.Pod

	// Pod finds one by name.
	Pod(namespace, name string) (*v1.Pod, bool)
}

// A Check is one thing that /healthz asks about.
type Check struct {
	Name string
	Ask  func() error // nil: all is well
}

// Debugging switches routes on (sv-6).
type Debugging struct {
	// Handlers are /run, /exec, /attach, /portForward, /containerLogs, /runningpods,
	// /debug/pprof and /logs: enableDebuggingHandlers.
	Handlers bool

	// SystemLogs is /logs: enableSystemLogHandler; NodeLogQuery its queries:
	// enableSystemLogQuery.
	SystemLogs, NodeLogQuery bool

	// Profiling is /debug/pprof: enableProfilingHandler; Flags /debug/flags:
	// enableDebugFlagsHandler.
	Profiling, Flags bool
}

// Hooks are told what the server does. Any may be nil. They must not block.
type Hooks struct {
	// Request is called when a request has been answered (sv-12).
	Request func(RequestInfo)

	// Started is called when one begins.
	Started func(RequestInfo)
}

// A RequestInfo is what is told of a request.
type RequestInfo struct {
	Method      string
	Path        string // as sv-12 cuts it
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
	for path, h := range c.Metrics {
		if first := firstSegment(path); first != "metrics" || path != "/metrics" && !plain(strings.TrimPrefix(path, "/metrics/")) || h == nil {
			return fmt.Errorf("server: Config.Metrics: %q is no path below /metrics with a handler", path)
		}
	}
	for path, h := range c.Handlers {
		if _, reserved := areas[firstSegment(path)]; reserved || h == nil || len(path) < 2 || path[0] != '/' || strings.ContainsAny(path, "{} ") {
			return fmt.Errorf("server: Config.Handlers: %q is a path of the kubelet, is invalid, or has no handler", path)
		}
	}
	seen := map[string]bool{"ping": true, "log": true}
	for _, check := range c.Checks {
		if seen[check.Name] || check.Ask == nil || !plain(check.Name) {
			return fmt.Errorf("server: Config.Checks: %q is no new name with a question", check.Name)
		}
		seen[check.Name] = true
	}
	return nil
}

// plain reports whether name can be one segment of a path, as it is written.
func plain(name string) bool {
	return name != "" && name != "." && name != ".." && url.PathEscape(name) == name && !strings.ContainsAny(name, "{}")
}
