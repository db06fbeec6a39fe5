package serve

import (
	"context"

	"google.golang.org/grpc"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageService implements the ImageService. It does not compile if the CRI has
// further calls.
type imageService struct {
	runtimeapi.UnsafeImageServiceServer
	images internalapi.ImageManagerService
}

func (s *imageService) ListImages(ctx context.Context, req *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	images, err := s.images.ListImages(ctx, req.GetFilter())
	return &runtimeapi.ListImagesResponse{Images: images}, err
}

func (s *imageService) StreamImages(req *runtimeapi.StreamImagesRequest, to grpc.ServerStreamingServer[runtimeapi.StreamImagesResponse]) error {
	images, err := s.images.ListImages(to.Context(), req.GetFilter())
	return inPieces(images, err, func(piece []*runtimeapi.Image) error {
		return to.Send(&runtimeapi.StreamImagesResponse{Images: piece})
	})
}

func (s *imageService) ImageStatus(ctx context.Context, req *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	return s.images.ImageStatus(ctx, req.GetImage(), req.GetVerbose())
}

func (s *imageService) PullImage(ctx context.Context, req *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	ref, err := s.images.PullImage(ctx, req.GetImage(), req.GetAuth(), req.GetSandboxConfig())
	return &runtimeapi.PullImageResponse{ImageRef: ref}, err
}

func (s *imageService) RemoveImage(ctx context.Context, req *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	return &runtimeapi.RemoveImageResponse{}, s.images.RemoveImage(ctx, req.GetImage())
}

func (s *imageService) ImageFsInfo(ctx context.Context, _ *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	return s.images.ImageFsInfo(ctx)
}
