package cri

import (
	"context"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageCalls decorates an image service with [calls]. A pull has only the deadline of
// its caller.
type imageCalls struct {
	calls
	service internalapi.ImageManagerService
}

var _ internalapi.ImageManagerService = (*imageCalls)(nil)

// Unwrap implements compose.Wrapper.
func (c *imageCalls) Unwrap() any { return c.service }

// Close closes the decorated service.
func (c *imageCalls) Close(ctx context.Context) error { return c.service.Close(ctx) }

func (c *imageCalls) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return call(ctx, &c.calls, "list_images", c.timeout, func(ctx context.Context) ([]*runtimeapi.Image, error) {
		return c.service.ListImages(ctx, filter)
	})
}

func (c *imageCalls) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	return call(ctx, &c.calls, "image_status", c.timeout, func(ctx context.Context) (*runtimeapi.ImageStatusResponse, error) {
		return c.service.ImageStatus(ctx, image, verbose)
	})
}

func (c *imageCalls) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	return call(ctx, &c.calls, "pull_image", forever, func(ctx context.Context) (string, error) {
		return c.service.PullImage(ctx, image, auth, sandbox)
	})
}

func (c *imageCalls) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	return c.do(ctx, "remove_image", c.timeout, func(ctx context.Context) error { return c.service.RemoveImage(ctx, image) })
}

func (c *imageCalls) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return call(ctx, &c.calls, "image_fs_info", c.timeout, func(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
		return c.service.ImageFsInfo(ctx)
	})
}
