package kubelet

import (
	"cmp"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/kubelet/config"
)

// configz returns the Configuration for /configz: as in the kubelet with the defaults, and
// the values that were detected. Values that may be credentials are masked.
func configz(b base, d serverDeps) *kubeletconfig.KubeletConfiguration {
	k := config.Configz(b.k)
	k.Port, k.ReadOnlyPort, k.HealthzPort = portOf(d.ports.api), portOf(d.ports.readOnly), new(portOf(d.ports.healthz))
	k.CgroupDriver = cmp.Or(k.CgroupDriver, "cgroupfs")
	if d.cgroups.tree != nil {
		k.CgroupDriver = string(d.cgroups.tree.Facts().Driver)
	}
	if k.Authentication.Webhook.Enabled == nil {
		k.Authentication.Webhook.Enabled = new(d.cluster != nil)
	}
	k.Authorization.Mode = cmp.Or(k.Authorization.Mode, kubeletconfig.KubeletAuthorizationModeWebhook)
	return k
}
