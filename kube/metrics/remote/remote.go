package remote

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/agent/podsapi"
	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/podresources"
	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/volume/csi"
)

// Metrics are the metrics of packages that use gRPC.
type Metrics struct {
	node    *metrics.Metrics
	runtime runtimeMetrics
	images  imageMetrics
	claims  claimMetrics

	registered  *prometheus.CounterVec
	allocated   *prometheus.HistogramVec
	csi         *prometheus.HistogramVec
	requests    map[string]prometheus.Counter // by method; "" is all
	allRequests *prometheus.CounterVec        // by version of the API
	failures    map[string]prometheus.Counter
	pods        map[string]*prometheus.CounterVec // by method of the pods API; "" is all
}

// New adds the metrics to m. It must be called once for m.
func New(m *metrics.Metrics) (*Metrics, error) {
	if m == nil {
		return nil, errors.New("remote: there are no Metrics to be served with")
	}
	s := m.Set()
	r := &Metrics{node: m, requests: map[string]prometheus.Counter{}, failures: map[string]prometheus.Counter{}}
	r.runtime.declare(s)
	r.images.declare(s)
	r.claims.declare(s)
	r.registered = s.Counters("device.Hooks.Registered", "kubelet_device_plugin_registration_total", "Registrations of device plugins.", "resource_name")
	r.allocated = s.Histograms("device.Hooks.Allocated", "kubelet_device_plugin_alloc_duration_seconds", "Duration of device allocations.", nil, "resource_name")
	r.csi = s.Histograms("csi.Config.Called", "csi_operations_seconds", "Duration of calls of CSI drivers.",
		[]float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}, "driver_name", "method_name", "grpc_status_code", "migrated")
	r.declareResources(s)
	r.declarePods(s)
	return r, s.Err()
}

// resourceMethods are parts of the names of metrics, by method.
var resourceMethods = map[string]string{"List": "_list", "GetAllocatableResources": "_get_allocatable", "Get": "_get"}

func (r *Metrics) declareResources(s *family.Set) {
	counters := func(name, help string) *prometheus.CounterVec {
		return s.Counters("podresources.Config.Called", "kubelet_pod_resources_endpoint_"+name, help, "server_api_version")
	}
	counter := func(name, help string) prometheus.Counter { return counters(name, help).WithLabelValues("v1") }
	total := counters("requests_total", "Requests of the pod resources API.")
	r.requests[""], r.allRequests = total.WithLabelValues("v1"), total
	for method, part := range resourceMethods {
		r.requests[method] = counter("requests"+part, "Calls of "+method+".")
		r.failures[method] = counter("errors"+part, "Calls of "+method+" that failed.")
	}
}

// Devices returns the hooks of a device.Manager (rule dev-13).
func (r *Metrics) Devices() device.Hooks {
	return device.Hooks{
		Registered: func(resource string) { r.registered.WithLabelValues(resource).Inc() },
		Allocated: func(i device.AllocateInfo) {
			r.allocated.WithLabelValues(i.Resource).Observe(i.Took.Seconds())
		},
	}
}

// CSI is a csi.Config.Called (rule vol-81).
func (r *Metrics) CSI(i csi.CallInfo) {
	r.csi.WithLabelValues(i.Driver, i.Method, i.Code, "false").Observe(i.Duration.Seconds())
}

// PodResources is a podresources.Config.Called.
func (r *Metrics) PodResources(i podresources.CallInfo) {
	if strings.HasPrefix(i.Method, "/v1alpha1.") {
		r.allRequests.WithLabelValues("v1alpha1").Inc() // its methods have no counters
		return
	}
	method := i.Method[strings.LastIndexByte(i.Method, '/')+1:]
	asked := r.requests[method]
	if asked == nil {
		return // not a method of the server
	}
	r.requests[""].Inc()
	asked.Inc()
	if i.Err != nil {
		r.failures[method].Inc()
	}
}

// podMethods are parts of the names of metrics, by method of the pods API.
var podMethods = map[string]string{"ListPods": "list_", "GetPod": "get_", "WatchPods": "watch_"}

func (r *Metrics) declarePods(s *family.Set) {
	counter := func(part, help string) *prometheus.CounterVec {
		return s.Counters("podsapi.Config.Called", "kubelet_pod_requests_"+part+"total", help, "server_api_version", "status_code")
	}
	r.pods = map[string]*prometheus.CounterVec{"": counter("", "Calls of the pods API.")}
	for method, part := range podMethods {
		r.pods[method] = counter(part, "Calls of "+method+".")
	}
}

// PodsAPI is a podsapi.Config.Called.
func (r *Metrics) PodsAPI(i podsapi.CallInfo) {
	called := r.pods[i.Method[strings.LastIndexByte(i.Method, '/')+1:]]
	if called == nil {
		return // not a method of the server
	}
	code := status.Code(i.Err).String()
	r.pods[""].WithLabelValues("v1alpha1", code).Inc()
	called.WithLabelValues("v1alpha1", code).Inc()
}
