package kubelet

import (
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/cm/dra/registry"
	cmstate "github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/volume"
)

// claims prepares the resource claims of pods. A nil *claims prepares none.
type claims struct {
	*dra.Manager
	plugins *registry.Registry
	pods    pods
}

// supportsClaims reports whether pods may have resource claims: they are objects of a cluster,
// the runtime must inject devices, and plugins register as those of CSI drivers do.
func supportsClaims(b base) bool {
	return clustered(b.cfg) && !b.cfg.Runtime.Processes && volume.CanMount()
}

// newClaims constructs the manager of resource claims; nil if they are not supported.
func newClaims(b base, c *cluster) (*claims, error) {
	if !supportsClaims(b) {
		return nil, nil
	}
	objects := client.ResourceClaims{Client: c.conn.API, NodeName: b.cfg.NodeName}
	cl := &claims{pods: b.pods}
	var err error
	cl.plugins, err = registry.New(registry.Config{
		Slices: objects, Called: b.metrics.remote.DRA, Logger: b.logger,
		Changed: func(string) { // pods may wait for the driver
			for _, pod := range b.pods.Running() {
				if len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil {
					b.pods.PodChanged(pod.UID)
				}
			}
		},
		HealthChanged: func(driver string) {
			for _, uid := range cl.Pods(driver) {
				b.health.change(uid)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	cl.Manager, err = dra.New(dra.Config{
		Claims: objects, Plugins: cl.plugins, Store: cmstate.File(filepath.Join(b.cfg.RootDir, dra.StateFile)),
		Hooks: b.metrics.remote.Claims(), Logger: b.logger,
	})
	if err != nil {
		return nil, err
	}
	return cl, nil
}

// deviceHealth returns the health of the devices that a pod has through claims, by container.
func (c *claims) deviceHealth(uid types.UID) map[string][]v1.ResourceStatus {
	if c == nil || !c.MayHaveResources(uid) {
		return nil
	}
	pod := c.pods.desiredPod(uid)
	if pod == nil {
		return nil
	}
	return c.Health(pod, c.plugins.Health)
}

// components returns what runs for the claims.
func (c *claims) components() []component {
	if c == nil {
		return nil
	}
	return []component{c.plugins.Run, c.Run}
}
