package containers

import (
	"context"
	"slices"
	"strings"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imagesOf returns the image service of a backend.
func imagesOf(s *service) internalapi.ImageManagerService {
	if s.puller == nil {
		return withoutImages{images{s}}
	}
	return images{s}
}

// images is the image service over a Puller.
type images struct{ s *service }

// withoutImages is the image service of a backend whose Run pulls: each name is present.
type withoutImages struct{ images }

// WithoutImages implements images.WithoutImages of package cri: nothing is pulled.
func (withoutImages) WithoutImages() {}

func (withoutImages) ImageStatus(_ context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	return &runtimeapi.ImageStatusResponse{Image: image(spec.GetImage(), nil)}, nil
}

func (withoutImages) ListImages(context.Context, *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return nil, unsupported("ListImages", "the backend is no Puller")
}

func (images) Close(context.Context) error { return nil }

// image returns an image with the size 1, because the CRI requires one above 0.
func image(ref string, names []string) *runtimeapi.Image {
	if len(names) == 0 {
		names = []string{ref}
	}
	img := &runtimeapi.Image{Id: ref, Size: 1, Spec: &runtimeapi.ImageSpec{Image: ref}}
	for _, name := range names {
		if strings.Contains(name, "@") {
			img.RepoDigests = append(img.RepoDigests, name)
		} else {
			img.RepoTags = append(img.RepoTags, name)
		}
	}
	return img
}

func (i images) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	present, err := i.s.puller.Images(ctx)
	if err != nil {
		return nil, backendError(ctx, "list images", err)
	}
	var list []*runtimeapi.Image
	for ref, names := range present {
		if name := filter.GetImage().GetImage(); name == "" || name == ref || slices.Contains(names, name) {
			list = append(list, image(ref, names))
		}
	}
	return list, nil
}

func (i images) ImageStatus(ctx context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	list, err := i.ListImages(ctx, &runtimeapi.ImageFilter{Image: spec})
	if err != nil || len(list) == 0 {
		return &runtimeapi.ImageStatusResponse{}, err
	}
	return &runtimeapi.ImageStatusResponse{Image: list[0]}, nil
}

func (i images) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	if i.s.puller == nil {
		return spec.GetImage(), nil
	}
	ref, err := i.s.puller.Pull(ctx, spec.GetImage(), Auth{
		Username: auth.GetUsername(), Password: auth.GetPassword(), Server: auth.GetServerAddress(),
		IdentityToken: auth.GetIdentityToken(), RegistryToken: auth.GetRegistryToken(),
	})
	if err != nil {
		return "", backendError(ctx, "pull image "+spec.GetImage(), err)
	}
	return ref, nil
}

func (images) RemoveImage(context.Context, *runtimeapi.ImageSpec) error {
	return unsupported("RemoveImage", "a backend collects its images")
}

func (images) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return nil, unsupported("ImageFsInfo", "a backend has no file system for images")
}
