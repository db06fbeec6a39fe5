package cri_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A shelf is a runtime with images.
type shelf struct {
	*twister
	images  []*runtimeapi.Image
	removed []*runtimeapi.ImageSpec
	err     error
}

func (s *shelf) ListImages(context.Context, *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return s.images, s.err
}

func (s *shelf) RemoveImage(_ context.Context, spec *runtimeapi.ImageSpec) error {
	s.removed = append(s.removed, spec)
	return s.err
}

func TestImagesAreListedWithTheirUse(t *testing.T) { // ig-4, ig-7, ig-19
	f := newFake()
	s, containers := found("a", "s1", 0, 0, "web/0 running", "old/0 exited")
	containers[0].ImageId, containers[0].ImageRef = "sha256:1", "docker.io/img@sha256:2"
	containers[0].Mounts = []*runtimeapi.Mount{{ContainerPath: "/x"}, {ContainerPath: "/data", Image: &runtimeapi.ImageSpec{Image: "sha256:data"}}}
	f.put(s, containers...)
	sh := &shelf{twister: &twister{fakeCRI: f}, images: []*runtimeapi.Image{
		{Id: "sha256:1", RepoTags: []string{"img:1"}, RepoDigests: []string{"img@sha256:2"}, Size: 7, Pinned: true, Spec: &runtimeapi.ImageSpec{RuntimeHandler: "gvisor"}},
		nil, {},
	}}
	rt, err := cri.New(cri.Config{Name: "fake", Runtime: sh, Images: sh, Dirs: cri.Dirs{Root: t.TempDir()}})
	require.NoError(t, err)

	images, err := rt.Images(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []runtime.Image{{ID: "sha256:1", Tags: []string{"img:1"}, Digests: []string{"img@sha256:2"}, Size: 7, Pinned: true, RuntimeHandler: "gvisor"}}, images)

	uses, err := rt.ImageUses(t.Context())
	require.NoError(t, err)
	require.Len(t, uses, 3)
	var web, volume runtime.ImageUse
	for _, u := range uses {
		switch {
		case u.Volume:
			volume = u
		case u.Container == "web":
			web = u
		}
	}
	assert.Equal(t, "ns/pod-a", web.Namespace+"/"+web.Pod)
	assert.Equal(t, "docker.io/img@sha256:2", web.Ref)
	assert.Equal(t, runtime.ImageUse{Name: "sha256:data", Namespace: "ns", Pod: "pod-a", Container: "web", Volume: true}, volume)

	require.NoError(t, rt.RemoveImage(t.Context(), images[0]))
	assert.Equal(t, "sha256:1 gvisor", sh.removed[0].Image+" "+sh.removed[0].RuntimeHandler)
	sh.err = status.Error(codes.NotFound, "no such image")
	require.NoError(t, rt.RemoveImage(t.Context(), images[0]), "an absent image")
	sh.err = errors.New("disk full")
	require.ErrorContains(t, rt.RemoveImage(t.Context(), images[0]), "sha256:1: ")
	_, err = rt.Images(t.Context())
	require.ErrorContains(t, err, "disk full")

	// ImageUses fails if the status of a running container is unknown.
	sh.containerStatus = func(r *runtimeapi.ContainerStatusResponse) *runtimeapi.ContainerStatusResponse {
		if r.Status.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
			return r
		}
		return new(runtimeapi.ContainerStatusResponse)
	}
	uses, err = rt.ImageUses(t.Context())
	require.NoError(t, err)
	assert.Len(t, uses, 3)
	sh.containerStatus = func(r *runtimeapi.ContainerStatusResponse) *runtimeapi.ContainerStatusResponse {
		return new(runtimeapi.ContainerStatusResponse)
	}
	_, err = rt.ImageUses(t.Context())
	require.Error(t, err)
	require.NoError(t, rt.ForgetImages([]string{"sha256:1"}, time.Now()))
}
