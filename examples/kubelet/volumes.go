package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/configmap"
	"github.com/kubeparts/kubeparts/volume/csi"
	"github.com/kubeparts/kubeparts/volume/csi/register"
	"github.com/kubeparts/kubeparts/volume/downward"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/hostpath"
	"github.com/kubeparts/kubeparts/volume/image"
	"github.com/kubeparts/kubeparts/volume/local"
	"github.com/kubeparts/kubeparts/volume/projected"
	"github.com/kubeparts/kubeparts/volume/secret"
	"github.com/kubeparts/kubeparts/volume/token"
)

// volumes are those of pods.
type volumes struct {
	*volume.Manager
	mounts  bool              // this agent may mount
	drivers *register.Watcher // of CSI; nil: none can register
	share   func()            // done once, before anything is mounted
}

// makeVolumes makes what mounts the volumes of pods: every kind, as far as this
// agent may mount and there is somebody who has what they are made from.
func (a *assembly) makeVolumes(files *fileObjects) (*volumes, error) {
	opts, joined := a.opts, a.cluster
	v := &volumes{mounts: volume.CanMount()}
	mounter := volume.NewMounter(v.mounts)
	cfg := volume.Config{
		Root: opts.root, Mounter: mounter, StatsPeriod: opts.kubelet.VolumeStatsAggPeriod.Duration, Hooks: a.count.Volumes(), Record: a.record, Logger: a.logger,
	}
	var err error
	if cfg.SELinuxLabel, err = volume.HostSELinuxLabel(); err != nil {
		return nil, err
	}
	var objects volume.Objects
	var tokens *token.Cache
	var bundles volume.TrustBundles
	var attachments csi.Drivers
	switch {
	case joined != nil:
		objects, bundles, attachments = joined.objects, joined.objects, drivers{joined}
		cfg.Claims, cfg.Node, cfg.Attached = joined.objects, joined.object, joined.attached
		cfg.Reported, cfg.Expanded = joined.reported, joined.objects.ClaimExpanded
		if tokens, err = token.New(token.Config{Get: joined.objects.Token}); err != nil {
			return nil, err
		}
	case files != nil:
		objects = files
	}
	empty, err := emptydir.New(emptydir.Config{Mounter: mounter, Allocatable: a.allocatable, Logger: a.logger})
	if err != nil {
		return nil, err
	}
	cfg.Plugins = []volume.Plugin{empty, new(hostpath.Plugin), new(image.Plugin)}
	add := func(p volume.Plugin, failed error) {
		cfg.Plugins, err = append(cfg.Plugins, p), errors.Join(err, failed)
	}
	memory := empty.Tmpfs()
	add(configmap.New(configmap.Config{Objects: objects, Mounter: mounter}))
	add(secret.New(secret.Config{Objects: objects, Tmpfs: memory}))
	add(downward.New(downward.Config{Allocatable: a.allocatable, Tmpfs: memory}))
	add(projected.New(projected.Config{Objects: objects, Tokens: tokens, TrustBundles: bundles, Allocatable: a.allocatable, Tmpfs: memory}))
	add(local.New(local.Config{Root: opts.root, Mounter: mounter, Exec: exec.New()}))
	if v.mounts {
		driven, failed := csi.New(csi.Config{
			Root: opts.root, NodeName: opts.nodeName, Mounter: mounter, Drivers: attachments, Objects: objects, Tokens: tokens,
			Registered: joined.driverIsHere, Deregistered: joined.driverIsGone,
			Changed: func() { v.PluginChanged(csi.Name) }, Called: a.count.remote.CSI, Logger: a.logger,
		})
		add(driven, failed)
		if v.drivers, failed = register.New(register.Config{
			Dir: filepath.Join(opts.root, "plugins_registry"), Logger: a.logger,
			Handlers: map[string]register.Handler{register.CSIPlugin: driven},
		}); failed != nil {
			return nil, failed
		}
	}
	if err != nil {
		return nil, err
	}
	if v.mounts {
		joined.waitForCSINode()
	}
	if v.Manager, err = volume.New(cfg); err != nil {
		return nil, err
	}
	if v.mounts && opts.runtime != "process" {
		v.share = a.shareRoot
	}
	files.OnChange(v.ObjectChanged)
	joined.onChange(v.Manager)
	return v, nil
}

// shareRoot lets mounts come and go between containers and the machine, below the
// agent's directory. A pod that needs it fails without, so it is not fatal here.
func (a *assembly) shareRoot() {
	err := os.MkdirAll(a.opts.root, 0o750)
	if err == nil {
		err = volume.Share(a.opts.root)
	}
	if err != nil {
		a.logger.Warn("mounts don't propagate between the machine and containers", "err", err)
	}
}

// Run mounts and unmounts until ctx ends.
func (v *volumes) Run(ctx context.Context) error {
	if v.share != nil {
		v.share()
	}
	if v.drivers == nil {
		return v.Manager.Run(ctx)
	}
	stopped := make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	go func() { stopped <- v.drivers.Run(watching) }()
	err := v.Manager.Run(ctx)
	stop()
	return errors.Join(err, <-stopped)
}

// runtime tells the runtime of groups that files belong to, and where the parts
// of volumes are.
func (v *volumes) runtime(cfg cri.Config) cri.Config {
	cfg.VolumeGroups = v.Groups
	if v.mounts {
		cfg.SubPath = func(ctx context.Context, s cri.SubPath) (string, error) {
			return v.SubPath(ctx, volume.SubPath{
				PodUID: s.Pod.UID, Volume: s.Name, Root: s.Volume.Path, Container: s.Container, Index: s.Index, Path: s.Path,
			})
		}
	}
	return cfg
}

// drivers are what the API server knows of CSI drivers.
type drivers struct{ *cluster }

func (d drivers) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return d.objects.CSIDriver(ctx, name)
}

func (d drivers) VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	return d.conn.API.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
}

// driverIsHere makes a CSI driver known to the cluster (vol-64).
func (c *cluster) driverIsHere(ctx context.Context, d csi.Driver) error {
	if c == nil {
		return nil
	}
	return client.CSINode{Client: c.conn.API, NodeName: c.spec.Name}.Add(ctx, client.CSIDriver{
		Name: d.Name, NodeID: d.NodeID, MaxVolumes: d.MaxVolumes, Topology: d.Topology,
	})
}

// driverIsGone takes that back.
func (c *cluster) driverIsGone(ctx context.Context, name string) {
	if c == nil {
		return
	}
	if err := (client.CSINode{Client: c.conn.API, NodeName: c.spec.Name}).Remove(ctx, name); err != nil {
		c.logger.Warn("the cluster still counts on a driver that is gone", "driver", name, "err", err)
	}
}

// object returns the node's object; nil until it is known.
func (c *cluster) object() *v1.Node {
	if c.node == nil {
		return nil
	}
	return c.node.Object()
}

// attached reports whether the controller has attached a volume (vol-17).
func (c *cluster) attached(name v1.UniqueVolumeName) (device string, ok bool) {
	o := c.object()
	if o == nil {
		return "", false
	}
	for _, a := range o.Status.VolumesAttached {
		if a.Name == name {
			return a.DevicePath, true
		}
	}
	return "", false
}

// reported tells whether the cluster knows that a volume is in use, so that it is
// not detached (vol-17).
func (c *cluster) reported(name v1.UniqueVolumeName) bool {
	o := c.object()
	return o != nil && slices.Contains(o.Status.VolumesInUse, name)
}

// onChange has the volumes told of objects that change, and of what is attached.
func (c *cluster) onChange(m *volume.Manager) {
	if c != nil {
		c.volumes.Store(m)
	}
}

// objectChanged passes a change on, once there is somebody who wants to know.
func (c *cluster) objectChanged(kind, namespace, name string) {
	if m := c.volumes.Load(); m != nil {
		m.ObjectChanged(kind, namespace, name)
	}
}

// volumesAttached tells the volumes that the node's status may say that another
// one is attached.
func (c *cluster) volumesAttached() {
	if m := c.volumes.Load(); m != nil {
		m.AttachChanged()
	}
}
