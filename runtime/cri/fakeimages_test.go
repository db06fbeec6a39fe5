package cri_test

import (
	"context"
	"maps"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fakeImages is the image service of a fakeCRI.
type fakeImages struct{ f *fakeCRI }

// has makes images present.
func (f *fakeCRI) has(names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		f.images[name] = &runtimeapi.Image{Id: "sha256:" + name, RepoTags: []string{name}, Size: 7}
	}
}

func (i fakeImages) ListImages(context.Context, *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	i.f.mu.Lock()
	defer i.f.mu.Unlock()
	return slices.Collect(maps.Values(i.f.images)), nil
}

func (i fakeImages) ImageStatus(ctx context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	if err := i.f.begin(ctx, "ImageStatus", spec.Image); err != nil {
		return nil, err
	}
	i.f.mu.Lock()
	defer i.f.mu.Unlock()
	return &runtimeapi.ImageStatusResponse{Image: i.f.images[spec.Image]}, nil
}

func (i fakeImages) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	if err := i.f.begin(ctx, "PullImage", spec.Image); err != nil {
		return "", err
	}
	i.f.mu.Lock()
	i.f.handlers = append(i.f.handlers, spec.RuntimeHandler)
	i.f.auths = append(i.f.auths, auth.GetUsername()+":"+auth.GetPassword())
	i.f.pulledFor = append(i.f.pulledFor, sandbox.GetMetadata().GetName())
	i.f.mu.Unlock()
	if i.f.pull != nil {
		if err := i.f.pull(ctx, spec.Image); err != nil {
			return "", err
		}
	}
	i.f.has(spec.Image)
	return "sha256:" + spec.Image, nil
}

func (i fakeImages) RemoveImage(context.Context, *runtimeapi.ImageSpec) error { return nil }
func (i fakeImages) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return nil, nil
}
func (i fakeImages) Close(context.Context) error { return nil }
