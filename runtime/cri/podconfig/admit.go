package podconfig

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// AdmitAppArmor returns why a pod that wants AppArmor profiles may not run on a
// machine that cannot enforce them: cannot says why not, nil that it can (se-3).
// A pod that wants none, or wants to be unconfined, runs anywhere.
func AdmitAppArmor(pod *v1.Pod, cannot error) *runtime.Rejection {
	if cannot == nil || !wantsAppArmor(pod) {
		return nil
	}
	return &runtime.Rejection{Reason: "AppArmor", Message: fmt.Sprintf("Cannot enforce AppArmor: %v", cannot)}
}

func wantsAppArmor(pod *v1.Pod) bool {
	wants := func(p *v1.AppArmorProfile) bool { return p != nil && p.Type != v1.AppArmorProfileTypeUnconfined }
	if sc := pod.Spec.SecurityContext; sc != nil && wants(sc.AppArmorProfile) {
		return true
	}
	for key, profile := range pod.Annotations {
		if strings.HasPrefix(key, appArmorAnnotation) && profile != "" && profile != "unconfined" {
			return true
		}
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if sc := list[i].SecurityContext; sc != nil && wants(sc.AppArmorProfile) {
				return true
			}
		}
	}
	return false
}

// AdmitGroups returns why a pod may not run on a node whose runtime cannot keep
// the groups of an image away from a process, if the pod asks for that (se-6).
func AdmitGroups(pod *v1.Pod, supported bool) *runtime.Rejection {
	sc := pod.Spec.SecurityContext
	if supported || sc == nil || sc.SupplementalGroupsPolicy == nil || *sc.SupplementalGroupsPolicy != v1.SupplementalGroupsPolicyStrict {
		return nil
	}
	return &runtime.Rejection{
		Reason:  "SupplementalGroupsPolicyNotSupported",
		Message: "supplementalGroupsPolicy: Strict is not supported by the runtime of this node",
	}
}
