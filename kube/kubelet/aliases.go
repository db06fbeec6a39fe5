package kubelet

import (
	"log/slog"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/edge"
	"github.com/kubeparts/kubeparts/kube/kubelet/options"
)

// Version is the version of Kubernetes that package kubelet implements, and that the node
// reports.
const Version = options.Version

// ProcessRuntime is the value of containerRuntimeEndpoint with which pods run as plain
// processes.
const ProcessRuntime = options.ProcessRuntime

// The types of a Config are declared in package options.
type (
	Config   = options.Config
	Runtime  = options.Runtime
	Cluster  = options.Cluster
	Host     = options.Host
	Shutdown = options.Shutdown

	NodeReporter = options.NodeReporter
	NodeInfo     = options.NodeInfo
	LocalObjects = options.LocalObjects
	Objects      = options.Objects
)

// LogLevel returns the slog level that corresponds to a verbosity of the kubelet: 0 and 1
// are warnings, 2 and 3 information, and 4 and above everything.
func LogLevel(verbosity int) slog.Level { return edge.LogLevel(verbosity) }
