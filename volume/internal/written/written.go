// Package written is what volumes have in common whose files the agent writes:
// ConfigMaps, Secrets, the downward API, projections.
package written

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/atomic"
	"github.com/kubeparts/kubeparts/volume/emptydir"
)

// adds are the bits that the walk for an fsGroup may add to a file's mode.
const adds = 0o440

// SetUp makes the volume hold files. With a tmpfs they are kept in memory (vol-52),
// else in a directory (vol-51). Containers get the volume read-only.
func SetUp(ctx context.Context, req volume.Request, tmpfs *emptydir.Tmpfs, files atomic.Payload) (volume.Mounted, error) {
	if err := files.Check(); err != nil { // before anything is made (vol-39)
		return volume.Mounted{}, Failed(req, err)
	}
	dir := req.Dir()
	var err error
	if tmpfs != nil {
		err = tmpfs.Mount(dir, req.Pod, nil)
	} else {
		err = emptydir.MakeDir(dir)
	}
	if err != nil {
		return volume.Mounted{}, err
	}
	var opt atomic.Options
	if req.FSGroup != nil {
		opt.Adds = adds
		opt.SetPerms = func(dir string) error { return own(ctx, req, dir) }
		if _, err := atomic.Current(dir); err != nil { // the first time
			if err := own(ctx, req, dir); err != nil {
				return volume.Mounted{}, err
			}
		}
	}
	if _, err := atomic.Write(dir, files, opt); err != nil {
		return volume.Mounted{}, err
	}
	return volume.Mounted{Volume: runtime.Volume{Path: dir, ReadOnly: true, SELinuxRelabel: true}}, nil
}

func own(ctx context.Context, req volume.Request, dir string) error {
	return volume.Own(ctx, dir, volume.Ownership{Group: *req.FSGroup, ReadOnly: true, Progress: req.Progress})
}

// TearDown removes the volume.
func TearDown(ctx context.Context, mounter volume.Mounter, at volume.Place) error {
	// A kubelet keeps its marker of such a volume here; RemoveTree does the rest.
	wrapped := at
	wrapped.Plugin, wrapped.Name = emptydir.Name, "wrapped_"+at.Name
	if err := untrusted.RemoveTree(ctx, wrapped.PluginDir()); err != nil {
		return err
	}
	return volume.RemoveTree(ctx, mounter, at.Dir())
}

// Construct returns a spec of a volume that is on disk, with its name.
func Construct(at volume.Place, source v1.VolumeSource) (*volume.Spec, error) {
	if _, err := os.Lstat(at.Dir()); err != nil {
		return nil, err
	}
	return &volume.Spec{Volume: &v1.Volume{Name: at.Name, VolumeSource: source}}, nil
}

// Stats measures what is in the volume.
func Stats(ctx context.Context, at volume.Place) (volume.Stats, error) {
	usage, err := volume.DiskUsage(ctx, at.Dir())
	return volume.Stats{FsStats: usage}, err
}

// Failed marks an error after which nothing is there: nothing was begun now, and
// nothing was there before, from an earlier set-up whose content has only become old.
func Failed(req volume.Request, err error) error {
	if _, there := os.Lstat(req.Dir()); req.Refresh || !errors.Is(there, fs.ErrNotExist) {
		return err
	}
	return volume.Definite(err)
}

// NoObjects is why an object can't be had: nothing was wired that gets one.
func NoObjects(kind, namespace, name string) error {
	return fmt.Errorf("couldn't get %s %v/%v, no kubeClient defined", kind, namespace, name)
}

// CheckName refuses the name of an object that can't be one, before anybody is asked
// for it.
func CheckName(kind, name string) error {
	if name == "" {
		return fmt.Errorf("%s has no name", kind)
	}
	if name != filepath.Base(name) || len(name) > 253 || name == "." || name == ".." {
		return fmt.Errorf("%s %q: is no name of an object", kind, name)
	}
	return nil
}
