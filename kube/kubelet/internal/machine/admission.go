package machine

import (
	"context"
	"maps"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/runtime"
)

// readTimeout bounds the time that a pod waits for the Node object.
const readTimeout = 5 * time.Second

// dependsOnObject reports whether the reason of a rejection is a label, a taint or an extended
// resource of the Node object.
func dependsOnObject(reason string) bool {
	resource, insufficient := strings.CutPrefix(reason, "OutOf")
	return reason == "NodeAffinity" || reason == "TaintToleration" || insufficient && strings.Contains(resource, "/")
}

// AdmitOn returns the function that decides whether a pod may run on the node. The Node object is
// read every 10 seconds, and a scheduler may already have seen labels, taints and extended
// resources that are newer: before a pod is rejected for them, the object is read again. read may
// be nil. devices reports whether a resource is one of device plugins, which the device manager
// checks.
func AdmitOn(machine admission.Node, object *stores.NodeObject, read func(context.Context) (*v1.Node, error),
	leaving func(types.UID) bool, devices func(v1.ResourceName) bool,
) func(context.Context, allocation.Request) *runtime.Rejection {
	decide := func(ctx context.Context, req allocation.Request, on *v1.Node) *runtime.Rejection {
		n := machine
		if on != nil {
			n.Labels, n.Taints = on.Labels, on.Spec.Taints
			n.Allocatable = withExtended(n.Allocatable, on.Status.Allocatable, devices)
		}
		return admission.ForNode(func() admission.Node { return n }, leaving)(ctx, req)
	}
	return func(ctx context.Context, req allocation.Request) *runtime.Rejection {
		known := object.Best()
		rejection := decide(ctx, req, known)
		if rejection == nil || read == nil || !dependsOnObject(rejection.Reason) {
			return rejection
		}
		reading, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		now, err := read(reading)
		if err != nil || known != nil && now.ResourceVersion == known.ResourceVersion {
			return rejection
		}
		return decide(ctx, req, now)
	}
}

// withExtended returns the resources of the machine and the extended ones of the Node object,
// without those of device plugins.
func withExtended(machine, object v1.ResourceList, devices func(v1.ResourceName) bool) v1.ResourceList {
	all := maps.Clone(machine)
	for name, q := range object {
		if _, has := all[name]; !has && strings.Contains(string(name), "/") && !devices(name) {
			all[name] = q
		}
	}
	return all
}

// readNode returns the function that reads the Node object; nil for a standalone kubelet.
func readNode(b stores.Base, joined *stores.Cluster) func(context.Context) (*v1.Node, error) {
	if joined == nil {
		return nil
	}
	nodes := joined.Conn.Heartbeats.CoreV1().Nodes()
	return func(ctx context.Context) (*v1.Node, error) {
		return nodes.Get(ctx, b.Config.NodeName, metav1.GetOptions{})
	}
}
