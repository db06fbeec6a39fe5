package volumes

import (
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/cm/dra/registry"
	cmstate "github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/volume"
)

// Claims prepares the resource claims of pods. A nil *Claims prepares none.
type Claims struct {
	*dra.Manager
	plugins *registry.Registry
	pods    stores.Pods
}

// SupportsClaims reports whether pods may have resource claims: they are objects of a cluster,
// the runtime must inject devices, and plugins register as those of CSI drivers do.
func SupportsClaims(b stores.Base) bool {
	return stores.Clustered(b.Config) && stores.HostContainers(b.Config) && volume.CanMount()
}

// NewClaims constructs the manager of resource claims; nil if they are not supported.
func NewClaims(b stores.Base, c *stores.Cluster) (*Claims, error) {
	if !SupportsClaims(b) {
		return nil, nil
	}
	objects := client.ResourceClaims{Client: c.Conn.API, NodeName: b.Config.NodeName}
	cl := &Claims{pods: b.Pods}
	var err error
	cl.plugins, err = registry.New(registry.Config{
		Slices: objects, Called: b.Metrics.Remote.DRA, Logger: b.Logger,
		Changed: func(string) { // pods may wait for the driver
			for _, pod := range b.Pods.Running() {
				if len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil {
					b.Pods.PodChanged(pod.UID)
				}
			}
		},
		HealthChanged: func(driver string) {
			for _, uid := range cl.Pods(driver) {
				b.Health.Change(uid)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	cl.Manager, err = dra.New(dra.Config{
		Claims: objects, Plugins: cl.plugins, Store: cmstate.File(filepath.Join(b.Config.RootDir, dra.StateFile)),
		Hooks: b.Metrics.Remote.Claims(), Logger: b.Logger,
	})
	if err != nil {
		return nil, err
	}
	return cl, nil
}

// DeviceHealth returns the health of the devices that a pod has through claims, by container.
func (c *Claims) DeviceHealth(uid types.UID) map[string][]v1.ResourceStatus {
	if c == nil || !c.MayHaveResources(uid) {
		return nil
	}
	pod := c.pods.DesiredPod(uid)
	if pod == nil {
		return nil
	}
	return c.Health(pod, c.plugins.Health)
}

// Components returns the components of the claims.
func (c *Claims) Components() []stores.Component {
	if c == nil {
		return nil
	}
	return []stores.Component{c.plugins.Run, c.Run}
}
