package remote

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/podresources"
	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/volume/csi"
)

// Metrics count what is spoken with others.
type Metrics struct {
	node    *metrics.Metrics
	runtime runtimeMetrics
	images  imageMetrics

	registered *prometheus.CounterVec
	allocated  *prometheus.HistogramVec
	csi        *prometheus.HistogramVec
	asked      map[string]prometheus.Counter // by method; "" is all
	refused    map[string]prometheus.Counter
}

// New returns Metrics that are served with m. It may be called once for m.
func New(m *metrics.Metrics) (*Metrics, error) {
	if m == nil {
		return nil, errors.New("remote: there are no Metrics to be served with")
	}
	s := m.Set()
	r := &Metrics{node: m, asked: map[string]prometheus.Counter{}, refused: map[string]prometheus.Counter{}}
	r.runtime.declare(s)
	r.images.declare(s)
	r.registered = s.Counters("device.Hooks.Registered", "kubelet_device_plugin_registration_total", "Registrations of device plugins.", "resource_name")
	r.allocated = s.Histograms("device.Hooks.Allocated", "kubelet_device_plugin_alloc_duration_seconds", "How long a device plugin took to hand out devices.", nil, "resource_name")
	r.csi = s.Histograms("csi.Config.Called", "csi_operations_seconds", "How long a call of a CSI driver took.",
		[]float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}, "driver_name", "method_name", "grpc_status_code", "migrated")
	r.declareResources(s)
	return r, s.Err()
}

// resourceMethods are the parts of the names of pod resources' metrics.
var resourceMethods = map[string]string{"List": "_list", "GetAllocatableResources": "_get_allocatable", "Get": "_get"}

func (r *Metrics) declareResources(s *family.Set) {
	counter := func(name, help string) prometheus.Counter {
		return s.Counters("podresources.Config.Called", "kubelet_pod_resources_endpoint_"+name, help, "server_api_version").WithLabelValues("v1")
	}
	r.asked[""] = counter("requests_total", "Questions about the resources of pods.")
	for method, part := range resourceMethods {
		r.asked[method] = counter("requests"+part, "Calls of "+method+".")
		r.refused[method] = counter("errors"+part, "Calls of "+method+" that failed.")
	}
}

// Devices returns the hooks of a device.Manager (dev-13).
func (r *Metrics) Devices() device.Hooks {
	return device.Hooks{
		Registered: func(resource string) { r.registered.WithLabelValues(resource).Inc() },
		Allocated: func(i device.AllocateInfo) {
			r.allocated.WithLabelValues(i.Resource).Observe(i.Took.Seconds())
		},
	}
}

// CSI is Config.Called of a csi.Plugin (vol-81).
func (r *Metrics) CSI(i csi.CallInfo) {
	r.csi.WithLabelValues(i.Driver, i.Method, i.Code, "false").Observe(i.Duration.Seconds())
}

// PodResources is Config.Called of a podresources.Server.
func (r *Metrics) PodResources(i podresources.CallInfo) {
	method := i.Method[strings.LastIndexByte(i.Method, '/')+1:]
	asked := r.asked[method]
	if asked == nil {
		return // no method of that server
	}
	r.asked[""].Inc()
	asked.Inc()
	if i.Err != nil {
		r.refused[method].Inc()
	}
}
