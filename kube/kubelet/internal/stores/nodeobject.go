package stores

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/node"
)

// A NodeObject holds the latest Node object that the API server has returned. A
// standalone kubelet has a nil *NodeObject.
type NodeObject struct {
	latest     atomic.Pointer[v1.Node]
	missing    atomic.Bool   // it was deleted since
	Exists     chan struct{} // closed when the object was returned for the first time
	once       sync.Once
	checkpoint *node.Checkpoint // nil: it is not checkpointed
	logger     *slog.Logger
}

// NewNodeObject reads the checkpoint of the object, if pods are checkpointed. A checkpoint
// that cannot be read is not used: a node without its labels would reject pods that
// select them.
func NewNodeObject(b Base) *NodeObject {
	o := &NodeObject{Exists: make(chan struct{}), logger: b.Logger}
	if !b.Config.Cluster.CheckpointPods {
		return o
	}
	checkpoint, err := node.OpenCheckpoint(filepath.Join(b.Config.RootDir, "node.json"), b.Config.NodeName)
	if err != nil {
		b.Logger.Error("Failed to read the checkpoint of the node; pods are not checkpointed", "err", err)
		return o
	}
	o.checkpoint = checkpoint
	return o
}

// Observed is called with each object that the API server returns, or with nil when it was
// deleted, by one goroutine at a time.
func (o *NodeObject) Observed(n *v1.Node) {
	o.missing.Store(n == nil)
	if n == nil {
		return
	}
	o.latest.Store(n)
	if o.checkpoint != nil {
		if err := o.checkpoint.Save(n); err != nil {
			o.logger.Error("Failed to checkpoint the node", "err", err)
		}
	}
	o.once.Do(func() { close(o.Exists) })
}

// Object returns the object of the API server; nil if it has not returned one, or has it no
// longer. Decisions of other components about the node are valid only while it exists.
func (o *NodeObject) Object() *v1.Node {
	if o == nil || o.missing.Load() {
		return nil
	}
	return o.latest.Load()
}

// owner returns an owner reference to the object; false if there is none, or if it is being
// deleted: what it would own would be garbage collected at once.
func (o *NodeObject) owner() (metav1.OwnerReference, bool) {
	return node.OwnerReference(o.Object())
}

// Best returns the last object of the API server, also if it was deleted, or else that of
// the checkpoint; nil if there is neither.
func (o *NodeObject) Best() *v1.Node {
	if o == nil {
		return nil
	}
	if object := o.latest.Load(); object != nil || o.checkpoint == nil {
		return object
	}
	return o.checkpoint.Object()
}

// Advertises reports whether the status of the Node object has a resource. c may be nil.
func (c *Cluster) Advertises(resource string) bool {
	if c == nil {
		return false
	}
	object := c.Object.Best()
	if object == nil {
		return false
	}
	amount := object.Status.Allocatable[v1.ResourceName(resource)]
	return amount.Sign() > 0
}

// Registered blocks until the API server has returned the object, or returns the error of
// ctx.
func (o *NodeObject) Registered(ctx context.Context) error {
	select {
	case <-o.Exists:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// HostIPs returns the internal addresses of the object; those of fallback if there are
// none.
func (o *NodeObject) HostIPs(fallback []string) []string {
	object := o.Best()
	if object == nil {
		return fallback
	}
	var ips []string
	for _, a := range object.Status.Addresses {
		if a.Type == v1.NodeInternalIP {
			ips = append(ips, a.Address)
		}
	}
	if len(ips) == 0 {
		return fallback
	}
	return ips
}

// Names returns the DNS names and addresses of the object, for a serving certificate.
func (o *NodeObject) Names() (names []string, ips []net.IP) {
	object := o.Best()
	if object == nil {
		return nil, nil
	}
	for _, a := range object.Status.Addresses {
		ip := net.ParseIP(a.Address)
		switch a.Type {
		case v1.NodeHostName, v1.NodeInternalDNS, v1.NodeExternalDNS:
			if ip == nil {
				names = append(names, a.Address)
			} else {
				ips = append(ips, ip)
			}
		case v1.NodeInternalIP, v1.NodeExternalIP:
			if ip != nil {
				ips = append(ips, ip)
			}
		}
	}
	return names, ips
}

// Attached reports whether the attach controller has attached a volume (rule vol-17).
func (o *NodeObject) Attached(name v1.UniqueVolumeName) (device string, ok bool) {
	object := o.Object()
	if object == nil {
		return "", false
	}
	for _, a := range object.Status.VolumesAttached {
		if a.Name == name {
			return a.DevicePath, true
		}
	}
	return "", false
}

// InUse reports whether the object lists a volume as in use, so that the controller does
// not detach it (rule vol-17).
func (o *NodeObject) InUse(name v1.UniqueVolumeName) bool {
	object := o.Object()
	return object != nil && slices.Contains(object.Status.VolumesInUse, name)
}

// ConfiguredIPs returns the addresses of the Config, without unspecified ones, or else the
// detected ones.
func ConfiguredIPs(given []net.IP, detected []string) []string {
	var ips []string
	for _, ip := range given {
		if !ip.IsUnspecified() {
			ips = append(ips, ip.String())
		}
	}
	if len(ips) == 0 {
		return detected
	}
	return ips
}
