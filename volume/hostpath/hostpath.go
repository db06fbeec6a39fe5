package hostpath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// Name is the name of the plugin.
const Name = "kubernetes.io/host-path"

// A Plugin is a volume.Plugin. The zero value is ready for use.
type Plugin struct{}

// Name implements volume.Plugin.
func (*Plugin) Name() string { return Name }

// CanSupport implements volume.Plugin.
func (*Plugin) CanSupport(spec *volume.Spec) bool { return source(spec) != nil }

func source(spec *volume.Spec) *v1.HostPathVolumeSource {
	switch {
	case spec.PV != nil:
		return spec.PV.Spec.HostPath
	case spec.Volume != nil:
		return spec.Volume.HostPath
	}
	return nil
}

// SetUp implements volume.Plugin.
func (*Plugin) SetUp(_ context.Context, req volume.Request) (volume.SetUpResult, error) {
	from := source(req.Spec)
	if err := Prepare(from); err != nil {
		return volume.SetUpResult{}, volume.Definite(err)
	}
	return volume.SetUpResult{Volume: runtime.Volume{Path: from.Path, ReadOnly: req.Spec.ReadOnly}}, nil
}

// Prepare returns an error unless the file at the path has the requested type. It creates the file or
// directory if the type permits it. The texts of errors are the kubelet's.
func Prepare(from *v1.HostPathVolumeSource) error {
	path := from.Path
	switch {
	case slices.Contains(strings.Split(filepath.ToSlash(path), "/"), ".."):
		return fmt.Errorf("invalid HostPath `%s`: must not contain '..'", path)
	case strings.Contains(path, "\x00"):
		return fmt.Errorf("invalid HostPath %q: must not contain a zero byte", path)
	case !filepath.IsAbs(path) && !strings.HasPrefix(path, "/"):
		return fmt.Errorf("invalid HostPath `%s`: must be an absolute path", path)
	}
	if from.Type == nil || *from.Type == v1.HostPathUnset {
		return nil
	}
	is, what, make := kind(*from.Type)
	if is == nil {
		return fmt.Errorf("%s is an invalid volume type", *from.Type)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && make != nil {
		return make(path)
	}
	if err == nil && is(info.Mode()) {
		return nil
	}
	actual, err := typeOf(path, info, err)
	if err != nil {
		return fmt.Errorf("hostPath type check failed, %s is not a %s, unable to determine its type: %w", path, what, err)
	}
	return fmt.Errorf("hostPath type check failed: %s is not a %s, it's a %s", path, what, actual)
}

// typeOf returns the type of a file from the result of os.Stat.
func typeOf(path string, info fs.FileInfo, err error) (v1.HostPathType, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("path %q does not exist", path)
	case err != nil:
		return "", err
	}
	for _, t := range []v1.HostPathType{v1.HostPathDirectory, v1.HostPathFile, v1.HostPathSocket, v1.HostPathCharDev, v1.HostPathBlockDev} {
		if is, _, _ := kind(t); is(info.Mode()) {
			return t, nil
		}
	}
	return "", errors.New("only recognise file, directory, socket, block device and character device")
}

// kind returns the check of a type, its name, and the function that creates it, if permitted.
func kind(t v1.HostPathType) (is func(fs.FileMode) bool, what string, make func(path string) error) {
	of := func(want fs.FileMode) func(fs.FileMode) bool {
		return func(m fs.FileMode) bool { return m.Type() == want }
	}
	switch t {
	case v1.HostPathDirectoryOrCreate:
		return fs.FileMode.IsDir, "directory", func(path string) error { return os.MkdirAll(path, 0o755) }
	case v1.HostPathDirectory:
		return fs.FileMode.IsDir, "directory", nil
	case v1.HostPathFileOrCreate:
		return fs.FileMode.IsRegular, "file", touch
	case v1.HostPathFile:
		return fs.FileMode.IsRegular, "file", nil
	case v1.HostPathSocket:
		return of(fs.ModeSocket), "socket file", nil
	case v1.HostPathCharDev:
		return of(fs.ModeDevice | fs.ModeCharDevice), "character device", nil
	case v1.HostPathBlockDev:
		return of(fs.ModeDevice), "block device", nil
	}
	return nil, "", nil
}

// touch creates an empty file, but not its directory. It follows symbolic links, as the kubelet does, and
// does not block on a FIFO.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// TearDown implements volume.Plugin: the file at the path is not changed.
func (*Plugin) TearDown(_ context.Context, at volume.Place) error {
	// SetUp creates no such directory; an empty one of another agent is removed.
	if err := os.Remove(at.Dir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hostpath: %w", err)
	}
	return nil
}

// ConstructSpec implements volume.Plugin. The path is unknown, because it is not stored on disk.
func (*Plugin) ConstructSpec(at volume.Place) (*volume.Spec, error) {
	return &volume.Spec{Volume: &v1.Volume{Name: at.Name, VolumeSource: v1.VolumeSource{
		HostPath: &v1.HostPathVolumeSource{Path: at.Dir()},
	}}}, nil
}

// Stats implements volume.Plugin. It returns errors.ErrUnsupported.
func (*Plugin) Stats(context.Context, volume.Place, runtime.Volume) (statsapi.FsStats, error) {
	return statsapi.FsStats{}, fmt.Errorf("hostpath: %w", errors.ErrUnsupported)
}
