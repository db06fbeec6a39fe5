package podconfig

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// AdmitAppArmor rejects a pod that requires an AppArmor profile unless the kernel
// enforces AppArmor (enabled). It returns nil for other pods, including those whose
// profiles are all Unconfined.
func AdmitAppArmor(pod *v1.Pod, enabled bool) *runtime.Rejection {
	if enabled || !requiresAppArmor(pod) {
		return nil
	}
	return &runtime.Rejection{Reason: "AppArmor", Message: "Cannot enforce AppArmor: AppArmor is not enabled on the host"}
}

func requiresAppArmor(pod *v1.Pod) bool {
	requires := func(p *v1.AppArmorProfile) bool { return p != nil && p.Type != v1.AppArmorProfileTypeUnconfined }
	if sc := pod.Spec.SecurityContext; sc != nil && requires(sc.AppArmorProfile) {
		return true
	}
	for key, profile := range pod.Annotations {
		if strings.HasPrefix(key, appArmorAnnotation) && profile != "" && profile != "unconfined" {
			return true
		}
	}
	for c := range podspec.Containers(pod) {
		if sc := c.SecurityContext; sc != nil && requires(sc.AppArmorProfile) {
			return true
		}
	}
	return false
}

// AdmitGroups rejects a pod with the supplemental groups policy Strict, which ignores the
// groups of the image, unless the runtime supports it. It returns nil for other pods.
func AdmitGroups(pod *v1.Pod, supported bool) *runtime.Rejection {
	sc := pod.Spec.SecurityContext
	if supported || sc == nil || sc.SupplementalGroupsPolicy == nil || *sc.SupplementalGroupsPolicy != v1.SupplementalGroupsPolicyStrict {
		return nil
	}
	return &runtime.Rejection{
		Reason:  "SupplementalGroupsPolicyNotSupported",
		Message: "SupplementalGroupsPolicy=Strict is not supported in this node",
	}
}
