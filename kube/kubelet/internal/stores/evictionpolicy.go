package stores

import (
	goruntime "runtime"
	"slices"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/eviction"
)

// EvictionPolicy returns the policy of the Configuration, and the signals whose thresholds
// are ignored.
func EvictionPolicy(k *kubeletconfig.KubeletConfiguration) (p eviction.Policy, ignored []eviction.Signal, err error) {
	settings := eviction.Settings{
		Hard: k.EvictionHard, Soft: k.EvictionSoft, SoftGracePeriod: k.EvictionSoftGracePeriod, MinimumReclaim: k.EvictionMinimumReclaim,
		EnforcePods: slices.Contains(k.EnforceNodeAllocatable, "pods"),
	}.WithDefaults(goruntime.GOOS, Deref(k.MergeDefaultEvictionSettings))
	thresholds, err := settings.Parse()
	return eviction.Policy{
		Thresholds: thresholds, MaxPodGracePeriod: int64(k.EvictionMaxPodGracePeriod),
		Transition:    k.EvictionPressureTransitionPeriod.Duration,
		NoLocalLimits: !IsolatesStorage(k),
	}, settings.Ignored(), err
}

// IsolatesStorage reports whether ephemeral storage is a resource of the node.
func IsolatesStorage(k *kubeletconfig.KubeletConfiguration) bool {
	return k.LocalStorageCapacityIsolation == nil || *k.LocalStorageCapacityIsolation
}
