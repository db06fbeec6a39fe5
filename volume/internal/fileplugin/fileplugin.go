// Package fileplugin implements the volumes whose files the agent writes: ConfigMaps, Secrets, the downward
// API and projected volumes.
package fileplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/atomic"
	"github.com/kubeparts/kubeparts/volume/emptydir"
)

// adds are the mode bits that [volume.Request.SetOwnership] adds to files of a read-only volume.
const adds = 0o440

// write replaces the content of the volume by files, on a tmpfs or on disk. Containers get the volume
// read-only.
func (p Plugin) write(ctx context.Context, req volume.Request, files atomic.Payload) (volume.SetUpResult, error) {
	if err := files.Check(); err != nil { // before anything is created
		return volume.SetUpResult{}, failed(req, err)
	}
	dir := req.Dir()
	var err error
	if p.cfg.Tmpfs != nil {
		err = p.cfg.Tmpfs.Mount(dir, req.Pod, nil)
	} else {
		err = emptydir.MakeDir(dir)
	}
	if err != nil {
		return volume.SetUpResult{}, err
	}
	var opt atomic.Options
	if req.FSGroup != nil {
		opt.IgnoreMode = adds
		opt.SetPerms = func(dir string) error { return own(ctx, req, dir) }
		if _, err := atomic.Current(dir); err != nil { // the first time
			if err := own(ctx, req, dir); err != nil {
				return volume.SetUpResult{}, err
			}
		}
	}
	if _, err := atomic.Write(dir, files, opt); err != nil {
		return volume.SetUpResult{}, err
	}
	return volume.SetUpResult{Volume: runtime.Volume{Path: dir, ReadOnly: true, SELinuxRelabel: true}}, nil
}

// own sets the group of the files, which containers cannot change.
func own(ctx context.Context, req volume.Request, dir string) error {
	spec := *req.Spec
	spec.ReadOnly = true
	req.Spec = &spec
	return req.SetOwnership(ctx, dir, true)
}

func remove(ctx context.Context, mounter volume.Mounter, at volume.Place) error {
	// The kubelet's marker of such a volume.
	wrapped := at
	wrapped.Plugin, wrapped.Name = emptydir.Name, "wrapped_"+at.Name
	if err := untrusted.RemoveTree(ctx, wrapped.PluginDir()); err != nil {
		return err
	}
	return volume.RemoveTree(ctx, mounter, at.Dir())
}

// construct returns the spec of a volume whose directory exists.
func construct(at volume.Place, source v1.VolumeSource) (*volume.Spec, error) {
	if _, err := os.Lstat(at.Dir()); err != nil {
		return nil, err
	}
	return &volume.Spec{Volume: &v1.Volume{Name: at.Name, VolumeSource: source}}, nil
}

// failed marks err as definite if the volume does not exist: neither this set-up has
// begun nor has an earlier one completed, whose content would only be outdated.
func failed(req volume.Request, err error) error {
	if _, there := os.Lstat(req.Dir()); req.Refresh || !errors.Is(there, fs.ErrNotExist) {
		return err
	}
	return volume.Definite(err)
}

// noObjects is a payload.Objects that has none, because there is no API server.
type noObjects struct{}

// ConfigMap returns an error.
func (noObjects) ConfigMap(_ context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return nil, fmt.Errorf("couldn't get configMap %v/%v, no kubeClient defined", namespace, name)
}

// Secret returns an error.
func (noObjects) Secret(_ context.Context, namespace, name string) (*v1.Secret, error) {
	return nil, fmt.Errorf("couldn't get secret %v/%v, no kubeClient defined", namespace, name)
}
