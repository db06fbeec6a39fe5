package kubelet

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
)

// readTimeout bounds the time that a pod waits for the Node object.
const readTimeout = 5 * time.Second

// dependsOnObject are the reasons of rejections for labels and taints of the Node object.
var dependsOnObject = []string{"NodeAffinity", "TaintToleration"}

// admitOn returns the function that decides whether a pod may run on the node. The Node object is
// read every 10 seconds, and a scheduler may already have seen labels and taints that are newer:
// before a pod is rejected for them, the object is read again. read may be nil.
func admitOn(machine admission.Node, object *nodeObject, read func(context.Context) (*v1.Node, error),
	leaving func(types.UID) bool,
) func(context.Context, allocation.Request) *runtime.Rejection {
	decide := func(ctx context.Context, req allocation.Request, on *v1.Node) *runtime.Rejection {
		n := machine
		if on != nil {
			n.Labels, n.Taints = on.Labels, on.Spec.Taints
		}
		return admission.ForNode(func() admission.Node { return n }, leaving)(ctx, req)
	}
	return func(ctx context.Context, req allocation.Request) *runtime.Rejection {
		known := object.best()
		rejection := decide(ctx, req, known)
		if rejection == nil || read == nil || !slices.Contains(dependsOnObject, rejection.Reason) {
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

// readNode returns the function that reads the Node object; nil for a standalone kubelet.
func readNode(b base, joined *cluster) func(context.Context) (*v1.Node, error) {
	if joined == nil {
		return nil
	}
	nodes := joined.conn.Heartbeats.CoreV1().Nodes()
	return func(ctx context.Context) (*v1.Node, error) {
		return nodes.Get(ctx, b.cfg.NodeName, metav1.GetOptions{})
	}
}
