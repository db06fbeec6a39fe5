package cri

import (
	"context"
	"errors"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Features implements [runtime.FeatureReporter]. containerd 1.6 reports none.
func (r *Runtime) Features(ctx context.Context) (runtime.Features, error) {
	answer, err := r.cfg.Runtime.Status(r.quiet(ctx), false)
	if err != nil {
		return runtime.Features{}, fmt.Errorf("cri: runtime status: %w", err)
	}
	has := answer.GetFeatures()
	f := runtime.Features{
		SupplementalGroupsPolicy:  has.GetSupplementalGroupsPolicy(),
		UserNamespacesHostNetwork: has.GetUserNamespacesHostNetwork(),
		MountOptions:              has.GetMountOptions(),
		Unreported:                has == nil,
	}
	for _, h := range answer.GetRuntimeHandlers() {
		if f.Handlers == nil {
			f.Handlers = map[string]runtime.HandlerFeatures{}
		}
		f.Handlers[h.GetName()] = runtime.HandlerFeatures{
			RecursiveReadOnlyMounts: h.GetFeatures().GetRecursiveReadOnlyMounts(),
			UserNamespaces:          h.GetFeatures().GetUserNamespaces(),
		}
	}
	return f, nil
}

// CgroupDriver implements [runtime.CgroupDriverReporter].
func (r *Runtime) CgroupDriver(ctx context.Context) (runtime.CgroupDriver, error) {
	answer, err := r.cfg.Runtime.RuntimeConfig(r.quiet(ctx))
	switch {
	case errors.Is(err, runtime.ErrUnsupported):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cri: runtime config: %w", err)
	case answer.GetLinux() == nil:
		return "", nil
	}
	switch driver := answer.Linux.CgroupDriver; driver {
	case runtimeapi.CgroupDriver_SYSTEMD:
		return runtime.CgroupDriverSystemd, nil
	case runtimeapi.CgroupDriver_CGROUPFS:
		return runtime.CgroupDriverCgroupfs, nil
	default:
		return "", fmt.Errorf("cri: runtime config: the cgroup driver is %v", driver)
	}
}
