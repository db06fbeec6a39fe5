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

// The paths that metrics are served at, as a kubelet has them.
const (
	Path         = "/metrics"
	ProbesPath   = "/metrics/probes"
	SLIsPath     = "/metrics/slis"
	ResourcePath = "/metrics/resource"
	CadvisorPath = "/metrics/cadvisor"
)

// A Config says whose metrics they are.
type Config struct {
	// NodeName is the label of kubelet_node_name. Required.
	NodeName string

	// Version is kubernetes_build_info. What it leaves empty of the Go version,
	// the compiler and the platform is filled in.
	Version version.Info

	// WithoutProcess leaves out go_* and process_*: for all but one of several
	// nodes in a process, or where somebody else serves them.
	WithoutProcess bool
}

// Metrics count what happens on one node, in registries of their own. Each method
// that returns Hooks is for one part, and counts what that part tells; parts that
// are not there are not counted. All may be called from any goroutine.
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

	// What is read for each scrape.
	state     stateMetrics
	disks     diskMetrics
	usage     usageMetrics
	container containerMetrics
}

// New returns Metrics in which nothing has been counted. It starts nothing.
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

// about tells what the node and the program are.
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
	m.main.Gauges("Config.NodeName", "kubelet_node_name", "The name of this node. Always 1.", "node").WithLabelValues(cfg.NodeName).Set(1)
	m.main.Gauges("Config.Version", "kubernetes_build_info", "What this program was built from. Always 1.",
		"build_date", "compiler", "git_commit", "git_tree_state", "git_version", "go_version", "major", "minor", "platform").
		WithLabelValues(v.BuildDate, v.Compiler, v.GitCommit, v.GitTreeState, v.GitVersion, v.GoVersion, v.Major, v.Minor, v.Platform).Set(1)
	if !cfg.WithoutProcess {
		m.main.Add(collectors.NewGoCollector())
		m.main.Add(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
}

// Registerer takes collectors of others, to be served at /metrics.
func (m *Metrics) Registerer() prometheus.Registerer { return m.main.Registerer() }

// A Family is all series of one name: what it is, where it is served, and which hook
// it comes from.
type Family = family.Family

// Families returns all that is served, those of the packages below this one
// included, if they were made, and without go_* and process_*.
func (m *Metrics) Families() []Family {
	var all []Family
	for _, s := range []*family.Set{m.main, m.probes, m.slis, m.resource, m.cadvisor} {
		all = append(all, s.Families()...)
	}
	return all
}

// Set is where the packages below this one have theirs counted.
func (m *Metrics) Set() *family.Set { return m.main }

// quick are buckets of what should take far less than a second.
var quick []float64 // those of the library

// exponential returns n buckets from the first on, each factor times the one before.
func exponential(first, factor float64, n int) []float64 {
	return prometheus.ExponentialBuckets(first, factor, n)
}
