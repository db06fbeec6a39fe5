package record

import (
	"context"

	"google.golang.org/protobuf/proto"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ImageService returns a service that records the calls of next.
func (r *Recorder) ImageService(next internalapi.ImageManagerService) internalapi.ImageManagerService {
	return imageService{next, r}
}

type imageService struct {
	internalapi.ImageManagerService
	r *Recorder
}

// Unwrap implements compose.Wrapper.
func (s imageService) Unwrap() any { return s.ImageManagerService }

func (s imageService) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return record(s.r, "ListImages", &runtimeapi.ListImagesRequest{Filter: filter}, func() ([]*runtimeapi.Image, error) {
		return s.ImageManagerService.ListImages(ctx, filter)
	}, func(list []*runtimeapi.Image) proto.Message {
		return &runtimeapi.ListImagesResponse{Images: sorted(list, (*runtimeapi.Image).GetId)}
	})
}

func (s imageService) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	return record(s.r, "ImageStatus", &runtimeapi.ImageStatusRequest{Image: image, Verbose: verbose}, func() (*runtimeapi.ImageStatusResponse, error) {
		return s.ImageManagerService.ImageStatus(ctx, image, verbose)
	}, asMessage[*runtimeapi.ImageStatusResponse])
}

func (s imageService) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, pod *runtimeapi.PodSandboxConfig) (string, error) {
	request := &runtimeapi.PullImageRequest{Image: image, Auth: auth, SandboxConfig: pod}
	return record(s.r, "PullImage", request, func() (string, error) {
		return s.ImageManagerService.PullImage(ctx, image, auth, pod)
	}, func(ref string) proto.Message { return &runtimeapi.PullImageResponse{ImageRef: ref} })
}

func (s imageService) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	return recordDo(s.r, "RemoveImage", &runtimeapi.RemoveImageRequest{Image: image}, func() error { return s.ImageManagerService.RemoveImage(ctx, image) })
}

func (s imageService) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return record(s.r, "ImageFsInfo", &runtimeapi.ImageFsInfoRequest{}, func() (*runtimeapi.ImageFsInfoResponse, error) {
		return s.ImageManagerService.ImageFsInfo(ctx)
	}, asMessage[*runtimeapi.ImageFsInfoResponse])
}
