package machine

import (
	"context"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/allocation/admission"
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

// A nodeAdmission decides whether pods may run on the node. The Node object is read every 10
// seconds, and a scheduler may already have seen labels, taints and extended resources that are
// newer: before a pod is rejected for them, the object is read again.
type nodeAdmission struct {
	Machine func() admission.Node
	Object  *stores.NodeObject                      // may be nil
	Read    func(context.Context) (*v1.Node, error) // reads the object; may be nil
	Leaving func(types.UID) bool                    // whether a pod's resources are being released
	Devices func(v1.ResourceName) bool              // whether a resource is one of device plugins, which the device manager checks
	read    atomic.Pointer[reading]
}

// A reading is a Node object that Refresh has read.
type reading struct {
	after *v1.Node // the object that was known then: a newer one replaces the reading
	node  *v1.Node
}

// newest returns the newest Node object that is known; nil if there is none.
func (n *nodeAdmission) newest() *v1.Node {
	known := n.Object.Best()
	if r := n.read.Load(); r != nil && r.after == known {
		return r.node
	}
	return known
}

// Admit implements allocation.Config.Admit.
func (n *nodeAdmission) Admit(ctx context.Context, req allocation.Request) *runtime.Rejection {
	machine := n.Machine()
	if on := n.newest(); on != nil {
		machine.Labels, machine.Taints = on.Labels, on.Spec.Taints
		machine.Allocatable = withExtended(machine.Allocatable, on.Status.Allocatable, n.Devices)
	}
	return admission.ForNode(func() admission.Node { return machine }, n.Leaving)(ctx, req)
}

// Refresh implements allocation.Config.Refresh.
func (n *nodeAdmission) Refresh(ctx context.Context, rejection *runtime.Rejection) bool {
	if n.Read == nil || !dependsOnObject(rejection.Reason) {
		return false
	}
	after, known := n.Object.Best(), n.newest()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	now, err := n.Read(ctx)
	if err != nil || known != nil && now.ResourceVersion == known.ResourceVersion {
		return false
	}
	n.read.Store(&reading{after, now})
	return true
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
