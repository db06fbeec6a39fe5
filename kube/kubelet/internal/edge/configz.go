package edge

import (
	"cmp"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

// Configz returns the Configuration for /configz: as in the kubelet with the defaults, and
// the values that were detected. Values that may be credentials are masked.
func Configz(b stores.Base, d ServerDeps) *kubeletconfig.KubeletConfiguration {
	k := config.Configz(b.Configuration)
	k.Port, k.ReadOnlyPort, k.HealthzPort = stores.PortOf(d.Ports.API), stores.PortOf(d.Ports.ReadOnly), new(stores.PortOf(d.Ports.Healthz))
	k.CgroupDriver = cmp.Or(k.CgroupDriver, "cgroupfs")
	if d.cgroups.Tree != nil {
		k.CgroupDriver = string(d.cgroups.Tree.Facts().Driver)
	}
	if k.Authentication.Webhook.Enabled == nil {
		k.Authentication.Webhook.Enabled = new(d.Cluster != nil)
	}
	k.Authorization.Mode = cmp.Or(k.Authorization.Mode, kubeletconfig.KubeletAuthorizationModeWebhook)
	return k
}
