package cri

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// Admit implements pipeline.Admitter: it rejects a pod whose security settings this
// node does not support. Those are sysctls that pods may not set, AppArmor profiles
// that the kernel does not enforce, and strict supplemental groups that the runtime does
// not support. A pod with strict groups is Deferred while
// the runtime does not report its features.
func (r *Runtime) Admit(ctx context.Context, pod *v1.Pod) *runtime.Rejection {
	if rejection := r.sysctls.Admit(ctx, pod); rejection != nil {
		return rejection
	}
	if rejection := podconfig.AdmitAppArmor(pod, r.cfg.Node.Facts.Security.AppArmor); rejection != nil {
		return rejection
	}
	if podconfig.AdmitGroups(pod, false) == nil {
		return nil // the features of the runtime do not matter
	}
	features, err := r.Features(ctx)
	if err != nil {
		return &runtime.Rejection{Reason: "RuntimeUnknown", Message: fmt.Sprintf("the features of the runtime are unknown: %v", err), Deferred: true, Err: err}
	}
	return podconfig.AdmitGroups(pod, features.SupplementalGroupsPolicy)
}
