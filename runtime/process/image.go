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

// There are no images: every name is one that is present, and stands for this
// host. So any pod spec passes the steps that ask for images, and fails, if it
// does, at its command.

// image is what stands for a name. Its size is 1 as CRI wants one above 0; its
// user is who processes run as unless they ask for another, so that
// runAsNonRoot is judged by the truth.
func image(name string) *runtimeapi.Image {
	img := &runtimeapi.Image{Id: name, Size: 1, Uid: &runtimeapi.Int64Value{Value: int64(os.Geteuid())}, Spec: &runtimeapi.ImageSpec{Image: name}}
	if strings.Contains(name, "@") {
		img.RepoDigests = []string{name}
	} else {
		img.RepoTags = []string{name}
	}
	return img
}

// ListImages lists the names that containers refer to, sorted.
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

// ImageStatus says that the image is present.
func (r *Runtime) ImageStatus(_ context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	if spec.GetImage() == "" {
		return nil, status.Error(codes.InvalidArgument, "process: image status: no name")
	}
	return &runtimeapi.ImageStatusResponse{Image: image(spec.GetImage())}, nil
}

// PullImage does nothing, and says that it worked; the reference is the name.
func (r *Runtime) PullImage(_ context.Context, spec *runtimeapi.ImageSpec, _ *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	if spec.GetImage() == "" {
		return "", status.Error(codes.InvalidArgument, "process: pull image: no name")
	}
	return spec.GetImage(), nil
}

// RemoveImage does nothing: there is nothing to remove.
func (r *Runtime) RemoveImage(context.Context, *runtimeapi.ImageSpec) error { return nil }

// ImageFsInfo says that images take no space on the file system of the state
// directory, and containers what their working directories hold.
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
