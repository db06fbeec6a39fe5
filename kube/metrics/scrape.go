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
	"github.com/kubeparts/kubeparts/volume/certificate"
)

// Sources are read for each scrape. Each may be nil: its metrics are then absent. They must
// be safe for concurrent use; the returned values are not modified. The types that
// implement them are those of an agent.
type Sources struct {
	// Pods has the pods of the agent.
	Pods Pods

	// Runtime has the pods of the last relist: *pleg.Generator.
	Runtime interface{ Pods() []*runtime.Pod }

	// Allocation has the resize state of each pod: *allocation.Manager.
	Allocation interface {
		ResizeState(pod types.UID) allocation.ResizeState
	}

	// Volumes has the number of volumes: *volume.Manager.
	Volumes interface {
		VolumeCounts() (desired, actual map[string]int)
	}

	// Devices has the number of devices of plugins by resource: *device.Manager.
	Devices interface {
		DeviceCounts() (healthy, unhealthy map[string]int)
	}

	// Claims has the number of prepared resource claims, in total and by driver: *dra.Manager.
	Claims interface {
		InUse() (all int, byDriver map[string]int)
	}

	// PodCertificates has the number of podCertificate sources: *certificate.Cache.
	PodCertificates interface{ Counts() []certificate.Count }

	// Cgroups has the requested memory in bytes of Guaranteed pods, which the kernel does
	// not reclaim, and of Burstable pods, which it reclaims last: *cm.Manager. If nil, memory
	// is not protected.
	Cgroups interface {
		ProtectedMemory() (guaranteed, burstable int64)
	}

	// Stats has the resource usage of the node and its pods.
	Stats Stats

	// PodMetrics has the metrics of pods and containers that the runtime computes:
	// *remote.PodMetrics. /metrics/cadvisor has them instead of those of Stats, as with the
	// feature gate PodAndContainerStatsFromCRI of the kubelet. If nil, or if the runtime does
	// not support them, those of Stats are served.
	PodMetrics interface {
		Collect(ctx context.Context, out chan<- prometheus.Metric) (supported bool, err error)
	}

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

// Pods has the pods of an agent: those of podworker.Table with the statuses of status.Manager.
type Pods interface {
	// Pods returns the desired pods with their statuses.
	Pods() []*v1.Pod

	// MirrorUIDs returns the UIDs of mirror pods by the UID of the static pod, empty if
	// there is none.
	MirrorUIDs() map[types.UID]types.UID

	// States returns the state of every pod worker.
	States() []podworker.PodState
}

// Stats has the resource usage of the node and its pods: *stats.Collector.
type Stats interface {
	// Summary returns the usage of all resources, and CPUAndMemory that of CPU and memory.
	// With an error they may return the part that could be read.
	Summary(ctx context.Context, fresh bool) (*statsapi.Summary, error)
	CPUAndMemory(ctx context.Context) (*statsapi.Summary, error)

	// CgroupStats returns the counters of the cgroup of a pod, or of one of its containers
	// if containerID is not empty.
	CgroupStats(pod types.UID, containerID string) (cgroups.Stats, error)

	// Cgroup returns the name of the cgroup of a pod; false if it has none.
	Cgroup(pod types.UID) (cgroups.Name, bool)

	// Dirs returns directories on the file systems of the node and of containers, whose
	// devices are labels. An empty directory is unknown.
	Dirs() (node, containers string)
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
