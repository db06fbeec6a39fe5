package fakecri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A resolved image is what a container was made of.
type resolved struct {
	spec *runtimeapi.ImageSpec // as statuses show it: by its name
	ref  string                // with its digest
	id   string
}

// resolveLocked finds an image that is there.
func (r *Runtime) resolveLocked(spec *runtimeapi.ImageSpec) (resolved, error) {
	return resolved{spec: spec, ref: spec.GetImage(), id: spec.GetImage()}, nil
}

func (r *Runtime) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return nil, unimplemented("ListImages", "not yet")
}

func (r *Runtime) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	return nil, unimplemented("ImageStatus", "not yet")
}

func (r *Runtime) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	return "", unimplemented("PullImage", "not yet")
}

func (r *Runtime) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	return unimplemented("RemoveImage", "not yet")
}

func (r *Runtime) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return nil, unimplemented("ImageFsInfo", "not yet")
}
