package hollow

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// metricsVersion is the version of the API of metrics-server.
const metricsVersion = "metrics.k8s.io/v1beta1"

// metricsWindow is the interval of which metrics-server reports the usage.
const metricsWindow = 15 * time.Second

// Metrics returns the API of a metrics-server, metrics.k8s.io, for nodes of this process: the CPU and
// memory that the behaviors of running containers specify, now. kubectl top and HorizontalPodAutoscalers
// use it. The results are the arguments of Aggregate of package kube/apitest:
//
//	err := api.Aggregate(hollow.Metrics(nodes))
//
// With another API server, a metrics-server reads the same from the nodes' [Port].
func Metrics(nodes *fakenode.Nodes) (metav1.APIResourceList, http.Handler) {
	read := metav1.Verbs{"get", "list"}
	return metav1.APIResourceList{
		GroupVersion: metricsVersion,
		APIResources: []metav1.APIResource{
			{Name: "nodes", SingularName: "node", Kind: "NodeMetrics", Verbs: read},
			{Name: "pods", SingularName: "pod", Kind: "PodMetrics", Namespaced: true, Verbs: read},
		},
	}, &metricsAPI{nodes: nodes, started: time.Now()}
}

// metricsAPI serves metrics.k8s.io.
type metricsAPI struct {
	nodes   *fakenode.Nodes
	started time.Time
}

// A measured is a NodeMetrics or a PodMetrics.
type measured struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Timestamp  metav1.Time         `json:"timestamp"`
	Window     metav1.Duration     `json:"window"`
	Usage      v1.ResourceList     `json:"usage,omitempty"`      // of a node
	Containers []measuredContainer `json:"containers,omitempty"` // of a pod
}

type measuredContainer struct {
	Name  string          `json:"name"`
	Usage v1.ResourceList `json:"usage"`
}

// ServeHTTP serves nodes, nodes/<name>, pods, namespaces/<namespace>/pods and
// namespaces/<namespace>/pods/<name>, as JSON.
func (m *metricsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, rest, _ := strings.Cut(r.URL.Path, metricsVersion+"/")
	parts := strings.Split(rest, "/")
	namespace, kind := "", "PodMetrics"
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	of := schema.GroupResource{Group: "metrics.k8s.io", Resource: parts[0]}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	switch {
	case r.Method != http.MethodGet:
		fail(w, apierrors.NewMethodNotSupported(of, r.Method))
		return
	case err != nil:
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	case len(parts) > 2 || parts[0] != "pods" && (parts[0] != "nodes" || namespace != ""):
		fail(w, apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, schema.GroupResource{}, "", "", 0, false))
		return
	case parts[0] == "nodes":
		kind = "NodeMetrics"
	}
	items, err := m.read(r, kind, namespace)
	if err != nil {
		fail(w, apierrors.NewInternalError(err))
		return
	}
	if len(parts) == 2 {
		for _, i := range items {
			if i.Name == parts[1] {
				reply(w, i)
				return
			}
		}
		fail(w, apierrors.NewNotFound(of, parts[1]))
		return
	}
	items = slices.DeleteFunc(items, func(i measured) bool { return !selector.Matches(labels.Set(i.Labels)) })
	reply(w, struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []measured `json:"items"`
	}{metav1.TypeMeta{Kind: kind + "List", APIVersion: metricsVersion}, metav1.ListMeta{}, items})
}

// read returns the metrics of the nodes or pods, sorted by namespace and name.
func (m *metricsAPI) read(r *http.Request, kind, namespace string) ([]measured, error) {
	items := []measured{}
	for _, node := range m.nodes.Names() {
		view, ok := m.nodes.View(node)
		if !ok {
			continue // it was removed meanwhile
		}
		stats, err := usage{node: node, view: view, started: m.started}.CPUAndMemory(r.Context())
		if err != nil {
			return nil, err
		}
		one := measured{
			TypeMeta: metav1.TypeMeta{Kind: kind, APIVersion: metricsVersion}, ObjectMeta: metav1.ObjectMeta{Name: node},
			Timestamp: metav1.Now(), Window: metav1.Duration{Duration: metricsWindow},
		}
		if kind == "NodeMetrics" {
			one.Usage = quantities(*stats.Node.CPU.UsageNanoCores, *stats.Node.Memory.WorkingSetBytes)
			items = append(items, one)
			continue
		}
		for _, p := range stats.Pods {
			pod, ok := view.Pod(p.PodRef.Namespace, p.PodRef.Name)
			if !ok || namespace != "" && pod.Namespace != namespace {
				continue
			}
			one.ObjectMeta, one.Containers = metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels}, nil
			for _, c := range p.Containers {
				one.Containers = append(one.Containers, measuredContainer{c.Name, quantities(*c.CPU.UsageNanoCores, *c.Memory.WorkingSetBytes)})
			}
			items = append(items, one)
		}
	}
	slices.SortFunc(items, func(a, b measured) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return items, nil
}

func quantities(nanoCores, bytes uint64) v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:    *resource.NewScaledQuantity(int64(nanoCores), resource.Nano),
		v1.ResourceMemory: *resource.NewQuantity(int64(bytes), resource.BinarySI),
	}
}

func reply(w http.ResponseWriter, o any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o) // the client is gone
}

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	err.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.ErrStatus.Code))
	_ = json.NewEncoder(w).Encode(err.ErrStatus) // the client is gone
}
