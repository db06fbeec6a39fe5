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
	"github.com/kubeparts/kubeparts/volume/certificate"
)

// Sources are read for each scrape. Each may be nil: its metrics are then absent. They must
// be safe for concurrent use; the returned values are not modified.
type Sources struct {
	// DesiredPods returns the desired pods with their statuses: podworker.Table.Desired.
	DesiredPods func() []*v1.Pod

	// MirrorUIDs returns the UIDs of mirror pods by the UID of the static pod, empty if
	// there is none: podworker.Table.MirrorUIDs.
	MirrorUIDs func() map[types.UID]types.UID

	// PodWorkers returns the state of every pod worker: podworker.Table.States.
	PodWorkers func() []podworker.PodState

	// RuntimePods returns the pods of the last relist: pleg.Generator.Pods.
	RuntimePods func() []*runtime.Pod

	// Resize returns the resize state of a pod: allocation.Manager.ResizeState.
	Resize func(types.UID) allocation.ResizeState

	// Volumes returns the number of volumes: volume.Manager.VolumeCounts.
	Volumes func() []volume.VolumeCount

	// ClaimsInUse returns the number of prepared resource claims, in total and by driver:
	// dra.Manager.InUse.
	ClaimsInUse func() (all int, byDriver map[string]int)

	// PodCertificates returns the number of podCertificate sources:
	// certificate.Cache.Counts. May be nil.
	PodCertificates func() []certificate.Count

	// ProtectedMemory returns the requested memory in bytes of Guaranteed pods, which the
	// kernel does not reclaim, and of Burstable pods, which it reclaims last:
	// cm.Manager.ProtectedMemory. If nil, memory is not protected.
	ProtectedMemory func() (guaranteed, burstable int64)

	// Stats has the resource usage of the node and its pods.
	Stats Stats

	// Machine has the properties of the machine.
	Machine Machine

	// Root is the root directory of the machine, os.DirFS("/"): disk names and network
	// packets are read from /proc and /sys. If nil, disks have no name, and there are no
	// metrics of packets.
	Root fs.FS

	// ServerExpires and ClientExpires return when the serving and the client certificate
	// expire; the zero time if there is none.
	ServerExpires, ClientExpires func() time.Time

	// Timeout bounds a scrape. Zero: 10s.
	Timeout time.Duration
}

// Stats has the resource usage of the node and its pods. Each field may be nil.
type Stats struct {
	// Summary returns the usage of all resources: stats.Collector.Summary.
	Summary func(ctx context.Context, fresh bool) (*statsapi.Summary, error)

	// CPUAndMemory returns the usage of CPU and memory: stats.Collector.CPUAndMemory. If
	// nil, Summary is used.
	CPUAndMemory func(ctx context.Context) (*statsapi.Summary, error)

	// Cgroup returns the counters of the cgroup of a pod or of one of its containers:
	// stats.Collector.Group.
	Cgroup func(pod types.UID, containerID string) (cgroups.Stats, error)

	// PodCgroup returns the name of the cgroup of a pod.
	PodCgroup func(pod types.UID) (cgroups.Name, bool)

	// Dirs returns directories on the file systems of the node and of containers, whose
	// devices are labels: stats.Collector.Dirs. An empty directory is unknown.
	Dirs func() (node, containers string)
}

// A Machine has properties of the machine. Metrics of zero and empty fields are absent.
type Machine struct {
	CPUs, Cores, Sockets int
	Memory, Swap         uint64 // bytes

	MachineID, SystemUUID, BootID string

	CgroupVersion int // 1 or 2
}

// Handlers returns the handlers of scrapes, by path: the path constants of this package. A
// source that fails does not affect the metrics of others; the metrics
// resource_scrape_error, container_scrape_error and machine_scrape_error report it.
func (m *Metrics) Handlers(s Sources) map[string]http.Handler {
	if s.Timeout == 0 {
		s.Timeout = 10 * time.Second
	}
	if s.Stats.CPUAndMemory == nil && s.Stats.Summary != nil {
		s.Stats.CPUAndMemory = func(ctx context.Context) (*statsapi.Summary, error) { return s.Stats.Summary(ctx, false) }
	}
	return map[string]http.Handler{
		Path:         m.handler(s, m.main.Gatherer(), m.collectState),
		ProbesPath:   m.handler(s, m.probes.Gatherer(), nil),
		SLIsPath:     m.handler(s, m.slis.Gatherer(), nil),
		ResourcePath: m.handler(s, nil, m.collectResource),
		CadvisorPath: m.handler(s, nil, m.collectCadvisor),
	}
}

// A collect sends the metrics that are read at the time of a scrape.
type collect func(ctx context.Context, s *Sources, out sink)

// handler serves the metrics of counted and those that now collects; either may be nil.
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

// A moment is the collector of one scrape. It describes no metrics, since those that it
// sends differ between scrapes.
type moment struct{ collect func(sink) }

func (moment) Describe(chan<- *prometheus.Desc)      {}
func (m moment) Collect(ch chan<- prometheus.Metric) { m.collect(ch) }

// A sink receives samples.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.put(d, prometheus.GaugeValue, time.Time{}, v, labels)
}

// put sends a sample with the time of its measurement; zero: without a time.
func (s sink) put(d *prometheus.Desc, typ prometheus.ValueType, at time.Time, v float64, labels []string) {
	sample, err := prometheus.NewConstMetric(d, typ, v, labels...)
	if err != nil {
		sample = prometheus.NewInvalidMetric(d, err)
	} else if !at.IsZero() {
		sample = prometheus.NewMetricWithTimestamp(at, sample)
	}
	s <- sample
}
