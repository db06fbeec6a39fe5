package process

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// There are no images: every name is present and stands for this host, so that
// any pod spec passes image checks.

// WithoutImages implements images.WithoutImages: no image is pulled, whatever the policy is.
func (r *Runtime) WithoutImages() {}

// image returns the image for a name. Its size is 1 because the CRI requires one
// above 0; its user is the user of the agent, so that runAsNonRoot is evaluated
// correctly.
func image(name string) *runtimeapi.Image {
	img := &runtimeapi.Image{Id: name, Size: 1, Uid: &runtimeapi.Int64Value{Value: int64(os.Geteuid())}, Spec: &runtimeapi.ImageSpec{Image: name}}
	if strings.Contains(name, "@") {
		img.RepoDigests = []string{name}
	} else {
		img.RepoTags = []string{name}
	}
	return img
}

// ListImages returns the image names that containers use, sorted.
func (r *Runtime) ListImages(_ context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	var names []string
	for _, c := range r.find(func(*container) bool { return true }) {
		if want := filter.GetImage().GetImage(); c.rec.Image != "" && (want == "" || want == c.rec.Image) {
			names = append(names, c.rec.Image)
		}
	}
	slices.Sort(names)
	var list []*runtimeapi.Image
	for _, name := range slices.Compact(names) {
		list = append(list, image(name))
	}
	return list, nil
}

// ImageStatus reports that the image is present.
func (r *Runtime) ImageStatus(_ context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	if spec.GetImage() == "" {
		return nil, status.Error(codes.InvalidArgument, "process: image status: no name")
	}
	return &runtimeapi.ImageStatusResponse{Image: image(spec.GetImage())}, nil
}

// PullImage does nothing and returns the name as the reference.
func (r *Runtime) PullImage(_ context.Context, spec *runtimeapi.ImageSpec, _ *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	if spec.GetImage() == "" {
		return "", status.Error(codes.InvalidArgument, "process: pull image: no name")
	}
	return spec.GetImage(), nil
}

// RemoveImage does nothing.
func (r *Runtime) RemoveImage(context.Context, *runtimeapi.ImageSpec) error { return nil }

// ImageFsInfo reports no usage by images on the file system of the state
// directory, and the size of the working directories of containers.
func (r *Runtime) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	bytes, files := diskUsage(r.dir.path("containers"))
	now := time.Now().UnixNano()
	fs := func(bytes, files uint64) []*runtimeapi.FilesystemUsage {
		return []*runtimeapi.FilesystemUsage{{
			Timestamp: now, FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: string(r.dir)},
			UsedBytes: &runtimeapi.UInt64Value{Value: bytes}, InodesUsed: &runtimeapi.UInt64Value{Value: files},
		}}
	}
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: fs(0, 0), ContainerFilesystems: fs(bytes, files)}, nil
}
