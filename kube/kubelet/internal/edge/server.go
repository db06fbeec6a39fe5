package edge

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/podworker"
)

// systemLogs is the directory that /logs serves.
const systemLogs = "/var/log"

type ServerDeps struct {
	Ports   stores.Ports
	Cluster *stores.Cluster
	agent   *agent.Agent
	runtime machine.PodRuntime
	cgroups machine.PodCgroups
	stats   *stats.Collector
	metrics map[string]http.Handler
	serving serving
}

// newServer constructs the kubelet's API and returns the components that serve it on the
// open ports.
func newServer(b stores.Base, d ServerDeps) ([]stores.Component, error) {
	if d.Ports == (stores.Ports{}) {
		return nil, nil
	}
	access, err := newAccess(b, d.Cluster, d.Ports.API == nil)
	if err != nil {
		return nil, err
	}
	if b.Configuration.EnableContentionProfiling {
		goruntime.SetBlockProfileRate(1)
	}
	cfg := apiConfig(b, d)
	b.Traces.Server(&cfg)
	cfg.Authenticator, cfg.Authorizer = access.Authenticator, access.Authorizer
	if err := compose.Apply(b.Config.Adjust, &cfg); err != nil {
		return nil, err
	}
	api, err := server.New(cfg)
	if err != nil {
		return nil, err
	}
	var all []stores.Component
	add := func(on net.Listener, message string, lc server.ListenerConfig) error {
		if on == nil {
			return nil
		}
		lc.Listener, lc.Logger = on, b.Logger
		l, err := server.NewListener(lc)
		if err != nil {
			return err
		}
		all = append(all, l.Run)
		b.Config.Notify(fmt.Sprintf(message, on.Addr()))
		return nil
	}
	if err := add(d.Ports.ReadOnly, "read-only API at http://%s/pods", server.ListenerConfig{Handler: api.ReadOnly(), Unauthenticated: true}); err != nil {
		return nil, err
	}
	if err := add(d.Ports.Healthz, "health at http://%s/healthz", server.ListenerConfig{Handler: api.Healthz(), Unauthenticated: true}); err != nil {
		return nil, err
	}
	if d.Ports.API == nil {
		return all, nil
	}
	full := server.ListenerConfig{Handler: api, TLS: server.TLSConfig{ClientCAs: access.ClientCAs, Certificate: d.serving.Certificate}}
	warnings, err := setTLS(b.Configuration, &full.TLS)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		b.Logger.Warn("TLS configuration of the kubelet API is weak", "reason", w)
	}
	if err := add(d.Ports.API, "kubelet API at https://%s", full); err != nil {
		return nil, err
	}
	return append(all, d.serving.Run...), nil
}

// apiConfig returns the configuration of the API, without access.
func apiConfig(b stores.Base, d ServerDeps) server.Config {
	cfg := server.Config{
		NodeName: b.Config.NodeName, Pods: reportedPods{d.agent}, Runtime: d.runtime.Runtime,
		Node: server.Node{
			Stats: d.stats, Metrics: d.metrics, ServiceLogs: server.Journal,
			Checks:  []server.Check{{Name: "syncloop", Check: b.Metrics.Check("healthz", "syncloop", d.agent.Healthy)}},
			Configz: map[string]any{"kubeletconfig": Configz(b, d)},
		},
		Containers: server.Containers{
			StreamIdleTimeout: b.Configuration.StreamingConnectionIdleTimeout.Duration, CheckpointDir: filepath.Join(b.Config.RootDir, "checkpoints"),
		},
		Debugging: server.Debugging{
			Handlers: stores.Deref(b.Configuration.EnableDebuggingHandlers), SystemLogs: stores.Deref(b.Configuration.EnableSystemLogHandler), NodeLogQuery: stores.Deref(b.Configuration.EnableSystemLogQuery),
			Profiling: stores.Deref(b.Configuration.EnableProfilingHandler), Flags: stores.Deref(b.Configuration.EnableDebugFlagsHandler),
		},
		Hooks: b.Metrics.API.Server(), Logger: b.Logger,
	}
	if level := b.Config.Host.LogLevel; level != nil {
		cfg.Debugging.SetVerbosity = func(v int) { level.Set(LogLevel(v)) }
	}
	if config.Enabled(b.Configuration, "ComponentStatusz") {
		cfg.Node.Statusz = &server.Statusz{Version: b.Config.Cluster.Version, Started: time.Now()}
	}
	if config.Enabled(b.Configuration, "ComponentFlagz") {
		cfg.Node.Flagz = b.Config.Host.Flags
	}
	if root, err := os.OpenRoot(systemLogs); err == nil {
		cfg.Node.Logs = root.FS()
	}
	return cfg
}

// LogLevel returns the slog level that corresponds to a verbosity of the kubelet: 0 and 1
// are warnings, 2 and 3 information, and 4 and above everything.
func LogLevel(verbosity int) slog.Level {
	switch {
	case verbosity >= 4:
		return slog.LevelDebug
	case verbosity >= 2:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// reportedPods are the desired pods with the statuses that the agent reports.
type reportedPods struct{ agent *agent.Agent }

// Pods implements server.Pods.
func (p reportedPods) Pods() []*v1.Pod {
	pods := p.agent.Table().Desired()
	for i, pod := range pods {
		pods[i] = p.withStatus(pod)
	}
	return pods
}

// MirrorUIDs and States implement metrics.Pods.
func (p reportedPods) MirrorUIDs() map[types.UID]types.UID { return p.agent.Table().MirrorUIDs() }
func (p reportedPods) States() []podworker.PodState        { return p.agent.Table().States() }

// Pod implements server.Pods.
func (p reportedPods) Pod(namespace, name string) (*v1.Pod, bool) {
	pod := p.agent.Table().PodByName(namespace, name)
	if pod == nil {
		return nil, false
	}
	return p.withStatus(pod), true
}

func (p reportedPods) withStatus(pod *v1.Pod) *v1.Pod {
	s, ok := p.agent.Status().Status(pod.UID)
	if !ok {
		return pod
	}
	reported := *pod
	reported.Status = s
	return &reported
}
