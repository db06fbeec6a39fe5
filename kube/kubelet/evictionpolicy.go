package kubelet

import (
	goruntime "runtime"
	"slices"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/eviction"
)

// evictionPolicy returns the policy of the Configuration, and the signals whose thresholds
// are ignored.
func evictionPolicy(k *kubeletconfig.KubeletConfiguration) (p eviction.Policy, ignored []eviction.Signal, err error) {
	settings := eviction.Settings{
		Hard: k.EvictionHard, Soft: k.EvictionSoft, SoftGracePeriod: k.EvictionSoftGracePeriod, MinimumReclaim: k.EvictionMinimumReclaim,
		EnforcePods: slices.Contains(k.EnforceNodeAllocatable, "pods"),
	}.WithDefaults(goruntime.GOOS, deref(k.MergeDefaultEvictionSettings))
	thresholds, err := settings.Parse()
	return eviction.Policy{
		Thresholds: thresholds, MaxPodGracePeriod: int64(k.EvictionMaxPodGracePeriod),
		Transition:    k.EvictionPressureTransitionPeriod.Duration,
		NoLocalLimits: !isolatesStorage(k),
	}, settings.Ignored(), err
}

// isolatesStorage reports whether ephemeral storage is a resource of the node.
func isolatesStorage(k *kubeletconfig.KubeletConfiguration) bool {
	return k.LocalStorageCapacityIsolation == nil || *k.LocalStorageCapacityIsolation
}
