package metrics

import (
	"errors"
	"fmt"
	goruntime "runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

// Paths at which the metrics are served, as with the kubelet.
const (
	Path         = "/metrics"
	ProbesPath   = "/metrics/probes"
	SLIsPath     = "/metrics/slis"
	ResourcePath = "/metrics/resource"
	CadvisorPath = "/metrics/cadvisor"
)

// A Config configures Metrics.
type Config struct {
	// NodeName is the label of kubelet_node_name. Required.
	NodeName string

	// Version is the version in kubernetes_build_info. Empty Go version, compiler and
	// platform are set to those of this program.
	Version version.Info

	// WithoutProcess omits go_* and process_*: for all but one of several nodes in a
	// process, or if the program serves them elsewhere.
	WithoutProcess bool
}

// Metrics are the metrics of one node, in its own registries. Each method that returns
// Hooks is for one package; the metrics of packages that are not used remain zero. Safe for
// concurrent use.
type Metrics struct {
	main, probes, slis, resource, cadvisor *family.Set

	pleg     plegMetrics
	worker   workerMetrics
	starts   *starts
	status   statusMetrics
	probe    probeMetrics
	eviction evictionMetrics
	images   imageMetrics
	volumes  volumeMetrics
	cgroups  cgroupMetrics
	pinning  pinningMetrics
	resizes  *resizeMetrics
	sources  sourceMetrics
	health   healthMetrics
	shutdown shutdownMetrics

	// Read for each scrape.
	state     stateMetrics
	disks     diskMetrics
	usage     usageMetrics
	container containerMetrics
}

// New returns Metrics with zero counts, or an error if NodeName is empty. It starts
// nothing.
func New(cfg Config) (*Metrics, error) {
	if cfg.NodeName == "" {
		return nil, errors.New("metrics: Config.NodeName is empty")
	}
	m := &Metrics{
		main: family.New(Path), probes: family.New(ProbesPath), slis: family.New(SLIsPath),
		resource: family.New(ResourcePath), cadvisor: family.New(CadvisorPath),
	}
	m.about(cfg)
	m.pleg.declare(m.main)
	m.worker.declare(m.main)
	m.starts = newStarts(m.main)
	m.status.declare(m.main)
	m.probe.declare(m.probes)
	m.eviction.declare(m.main)
	m.images.declare(m.main)
	m.volumes.declare(m.main)
	m.cgroups.declare(m.main)
	m.pinning.declare(m.main)
	m.resizes = newResizes(m.main)
	m.sources.declare(m.main)
	m.health.declare(m.slis)
	m.shutdown.declare(m.main)
	m.state.declare(m.main)
	m.disks.declare(m.main)
	m.usage.declare(m.resource)
	m.container.declare(m.cadvisor)
	return m, errors.Join(m.main.Err(), m.probes.Err(), m.slis.Err())
}

// about sets the metrics about the node and the program.
func (m *Metrics) about(cfg Config) {
	v := cfg.Version
	for _, f := range []struct {
		of   *string
		used string
	}{
		{&v.GoVersion, goruntime.Version()}, {&v.Compiler, goruntime.Compiler}, {&v.Platform, fmt.Sprintf("%s/%s", goruntime.GOOS, goruntime.GOARCH)},
	} {
		if *f.of == "" {
			*f.of = f.used
		}
	}
	m.main.Gauges("Config.NodeName", "kubelet_node_name", "Name of the node. The value is always 1.", "node").WithLabelValues(cfg.NodeName).Set(1)
	m.main.Gauges("Config.Version", "kubernetes_build_info", "Version of the program. The value is always 1.",
		"build_date", "compiler", "git_commit", "git_tree_state", "git_version", "go_version", "major", "minor", "platform").
		WithLabelValues(v.BuildDate, v.Compiler, v.GitCommit, v.GitTreeState, v.GitVersion, v.GoVersion, v.Major, v.Minor, v.Platform).Set(1)
	if !cfg.WithoutProcess {
		m.main.Add(collectors.NewGoCollector())
		m.main.Add(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
}

// Registerer returns the registry of /metrics, for collectors of the program.
func (m *Metrics) Registerer() prometheus.Registerer { return m.main.Registerer() }

// A Family describes a metric: name, type, labels, path, and the hook or source that it is
// counted by.
type Family = family.Family

// Families returns all metrics, including those of the packages below this one that were
// constructed, without go_* and process_*.
func (m *Metrics) Families() []Family {
	var all []Family
	for _, s := range []*family.Set{m.main, m.probes, m.slis, m.resource, m.cadvisor} {
		all = append(all, s.Families()...)
	}
	return all
}

// Set returns the metrics of /metrics, to which the packages below this one add theirs.
func (m *Metrics) Set() *family.Set { return m.main }

// quick are the buckets of operations that should take much less than a second.
var quick []float64 // the default buckets of the Prometheus library

// exponential returns n buckets, each factor times the previous one.
func exponential(first, factor float64, n int) []float64 {
	return prometheus.ExponentialBuckets(first, factor, n)
}
