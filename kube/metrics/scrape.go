package metrics

import (
	"context"
	"io/fs"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// Sources are what is read for each scrape. Any may be nil: its metrics are not
// there. They are called from many goroutines, and what they return is not changed.
type Sources struct {
	// Wanted are the pods that this node is to run: podworker.Loop.Pods.
	Wanted func() []*v1.Pod

	// Mirrors are the UIDs of the copies of static pods by the UID of theirs, empty
	// where there is none: podworker.Loop.MirrorUIDs.
	Mirrors func() map[types.UID]types.UID

	// Working counts the pods by how far they are: podworker.Workers.Counts.
	Working func() map[podworker.Count]int

	// Held are the pods of the runtime, as last listed: pleg.Generator.Pods.
	Held func() []*runtime.Pod

	// Resize is how the resize of a pod stands: allocation.Manager.State.
	Resize func(types.UID) allocation.State

	// Volumes counts volumes: volume.Manager.Totals.
	Volumes func() []volume.VolumeCount

	// Summary is what the node and its pods use: stats.Collector.Summary; and Usage
	// only CPU and memory: stats.Collector.CPUAndMemory. Without Usage it is Summary.
	Summary func(ctx context.Context, fresh bool) (*statsapi.Summary, error)
	Usage   func(ctx context.Context) (*statsapi.Summary, error)

	// Group is what the cgroup of a pod, or of a container in it, uses:
	// stats.Collector.Group. PodCgroup names that of a pod.
	Group     func(pod types.UID, containerID string) (cgroups.Stats, error)
	PodCgroup func(pod types.UID) (cgroups.Name, bool)

	// Machine is what the node has.
	Machine Machine

	// Root is the machine's, os.DirFS("/"): its /proc and /sys are read for the names
	// of disks, and for packets. Nil: disks have no name, and packets are not told.
	Root fs.FS

	// Dirs are directories on the file systems of the node and of containers, whose
	// devices are labels: stats.Collector.Dirs. Empty ones are not known.
	Dirs func() (node, containers string)

	// ServerExpires and ClientExpires are when the certificates end that this node
	// shows to others. A zero time: it has none.
	ServerExpires, ClientExpires func() time.Time

	// Timeout of a scrape. Zero: 10 s.
	Timeout time.Duration
}

// A Machine is what the node has. What is zero or empty is not told.
type Machine struct {
	CPUs, Cores, Sockets int
	Memory, Swap         uint64 // bytes

	MachineID, SystemUUID, BootID string

	CgroupVersion int // 1 or 2
}

// Handlers returns what answers scrapes, by path: those of the constants of this
// package. A part that fails leaves the others: what could be collected is answered
// (sv: collectors continue on error), and the failure is told by the metrics
// resource_scrape_error, container_scrape_error and machine_scrape_error.
func (m *Metrics) Handlers(s Sources) map[string]http.Handler {
	if s.Timeout == 0 {
		s.Timeout = 10 * time.Second
	}
	if s.Usage == nil && s.Summary != nil {
		s.Usage = func(ctx context.Context) (*statsapi.Summary, error) { return s.Summary(ctx, false) }
	}
	return map[string]http.Handler{
		Path:         m.handler(s, m.main.Gatherer(), m.collectState),
		ProbesPath:   m.handler(s, m.probes.Gatherer(), nil),
		SLIsPath:     m.handler(s, m.slis.Gatherer(), nil),
		ResourcePath: m.handler(s, nil, m.collectResource),
		CadvisorPath: m.handler(s, nil, m.collectCadvisor),
	}
}

// A collect sends what is true at the moment of a scrape.
type collect func(ctx context.Context, s *Sources, out sink)

// handler answers with what was counted, and with what is collected now.
func (m *Metrics) handler(s Sources, counted prometheus.Gatherer, now collect) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
		defer cancel()
		var all prometheus.Gatherers
		if counted != nil {
			all = append(all, counted)
		}
		if now != nil {
			registry := prometheus.NewRegistry()
			if err := registry.Register(moment{func(out sink) { now(ctx, &s, out) }}); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			all = append(all, registry)
		}
		promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
	})
}

// A moment is a collector of one scrape. It describes nothing: what it sends depends
// on the moment.
type moment struct{ collect func(sink) }

func (moment) Describe(chan<- *prometheus.Desc)      {}
func (m moment) Collect(ch chan<- prometheus.Metric) { m.collect(ch) }

// A sink takes samples.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.put(d, prometheus.GaugeValue, time.Time{}, v, labels)
}

// put sends a sample; the time is that of the measurement, or zero: now.
func (s sink) put(d *prometheus.Desc, typ prometheus.ValueType, at time.Time, v float64, labels []string) {
	sample, err := prometheus.NewConstMetric(d, typ, v, labels...)
	if err != nil {
		sample = prometheus.NewInvalidMetric(d, err)
	} else if !at.IsZero() {
		sample = prometheus.NewMetricWithTimestamp(at, sample)
	}
	s <- sample
}
