package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/csimigration"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/certificate"
	"github.com/kubeparts/kubeparts/volume/configmap"
	"github.com/kubeparts/kubeparts/volume/csi"
	"github.com/kubeparts/kubeparts/volume/csi/register"
	"github.com/kubeparts/kubeparts/volume/downward"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/hostpath"
	"github.com/kubeparts/kubeparts/volume/image"
	"github.com/kubeparts/kubeparts/volume/local"
	"github.com/kubeparts/kubeparts/volume/nfs"
	"github.com/kubeparts/kubeparts/volume/objectdir"
	"github.com/kubeparts/kubeparts/volume/projected"
	"github.com/kubeparts/kubeparts/volume/secret"
	"github.com/kubeparts/kubeparts/volume/token"
)

// volumeHealthGate is the feature gate of status.volumeHealth of pods (KEP-1432), which is alpha.
const volumeHealthGate = "CSIVolumeHealth"

// quotaGate is the feature gate of project quotas that measure emptyDir volumes (KEP-1029), which is
// off by default.
const quotaGate = "LocalStorageCapacityIsolationFSQuotaMonitoring"

// volumes are the volumes of pods.
type volumes struct {
	*volume.Manager
	support volumeSupport
	mounts  bool
	drivers *register.Watcher                  // of CSI and DRA; nil: none can register
	files   *objectFiles                       // nil: there are none
	certs   *certificate.Cache                 // nil: there is no API server
	csi     *csi.Plugin                        // nil: as drivers
	health  func(*v1.Pod) []v1.PodVolumeHealth // nil: it is not read
	share   func()                             // called before anything is mounted; nil: nothing
}

// objectFiles are the ConfigMaps and Secrets of Config.ObjectsDir.
type objectFiles struct{ *objectdir.Dir }

// Services implements cri.Objects; files have none.
func (objectFiles) Services(context.Context, string) ([]*v1.Service, bool) { return nil, true }

func newObjectFiles(b base) (*objectFiles, error) {
	if b.cfg.ObjectsDir == "" || b.cfg.clustered() {
		return nil, nil
	}
	dir, err := objectdir.New(objectdir.Config{
		Dir: b.cfg.ObjectsDir, Logger: b.logger,
		Changed: func(kind, namespace, name string) { b.queues.objects.add(objectName{kind, namespace, name}) },
	})
	if err != nil {
		return nil, fmt.Errorf("Config.ObjectsDir: %w", err)
	}
	return &objectFiles{dir}, nil
}

// objectsOf returns the objects that environment variables refer to: those of the
// cluster, else the files; nil if there are neither.
func objectsOf(c *cluster, files *objectFiles) cri.Objects {
	switch {
	case c != nil:
		return c.objects
	case files != nil:
		return files
	}
	return nil
}

// newVolumes constructs the volume manager with every plugin that works with the
// permissions of the process.
func newVolumes(b base, c *cluster, files *objectFiles, allocatable v1.ResourceList, processes bool, cl *claims) (*volumes, error) {
	v := &volumes{mounts: volume.CanMount(), files: files}
	mounter := volume.NewMounter(v.mounts)
	capacity := func() v1.ResourceList { return allocatable }
	cfg := volume.Config{
		RootDir: b.cfg.RootDir, Mounter: mounter, StatsPeriod: b.k.VolumeStatsAggPeriod.Duration, Hooks: b.metrics.Volumes(), Record: b.record, Logger: b.logger,
	}
	if config.Enabled(b.k, volumeHealthGate) {
		cfg.HealthChanged = b.health.change
	}
	var err error
	if cfg.SELinuxLabel, err = volume.HostSELinuxLabel(); err != nil {
		return nil, err
	}
	var objects volume.Objects
	var tokens *token.Cache
	var bundles projected.TrustBundles
	drivers := csi.Config{
		RootDir: b.cfg.RootDir, NodeName: b.cfg.NodeName, Mounter: mounter,
		Changed: func() { v.PluginChanged(csi.Name) }, Called: b.metrics.remote.CSI, Logger: b.logger,
	}
	switch {
	case c != nil:
		objects, bundles = c.objects, c.objects
		cfg.PersistentVolumes = volume.PersistentVolumeConfig{
			Claims: c.objects, Translate: csimigration.Translate, Node: c.object.object, Attached: c.object.attached, InUseReported: c.object.inUse, Expanded: c.objects.ClaimExpanded,
		}
		if tokens, err = token.New(token.Config{Get: c.objects.Token}); err != nil {
			return nil, err
		}
		if v.certs, err = certificate.New(certificate.Config{Requests: c.certs, Logger: b.logger}); err != nil {
			return nil, err
		}
		registry := driverRegistry{b, c}
		drivers.Drivers, drivers.Registered, drivers.Deregistered = registry, registry.add, registry.remove
	case files != nil:
		objects = files
	}
	cfg.PersistentVolumes.SELinuxOnePodOnly = !config.Enabled(b.k, "SELinuxMount")
	empty, err := emptydir.New(emptyDirConfig(b, mounter, capacity))
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
	add(downward.New(downward.Config{Allocatable: capacity, Tmpfs: memory}))
	add(projected.New(projected.Config{Objects: objects, Tokens: tokens, TrustBundles: bundles, Certificates: v.certs, Allocatable: capacity, Tmpfs: memory}))
	add(nfs.New(nfs.Config{Mounter: mounter}))
	add(local.New(local.Config{RootDir: b.cfg.RootDir, Mounter: mounter, Exec: exec.New()}))
	if v.mounts {
		drivers.Objects, drivers.Tokens = objects, tokens
		plugin, failed := csi.New(drivers)
		add(plugin, failed)
		v.csi = plugin
		handlers := map[string]register.Handler{register.CSIPlugin: plugin}
		if cl != nil {
			handlers[register.DRAPlugin] = cl.plugins
		}
		if v.drivers, failed = register.New(register.Config{
			Dir: filepath.Join(b.cfg.RootDir, "plugins_registry"), Logger: b.logger, Handlers: handlers,
		}); failed != nil {
			return nil, failed
		}
	}
	if err != nil {
		return nil, err
	}
	if err := compose.Apply(b.cfg.Adjust, "Volumes", &cfg); err != nil {
		return nil, err
	}
	v.support = volumeSupport{cfg.Plugins, cfg.PersistentVolumes.Translate}
	if v.Manager, err = volume.New(cfg); err != nil {
		return nil, err
	}
	if cfg.HealthChanged != nil {
		v.health = v.VolumeHealth
	}
	if v.mounts && !processes {
		v.share = func() { shareRoot(b) }
	}
	return v, nil
}

func emptyDirConfig(b base, mounter volume.Mounter, allocatable func() v1.ResourceList) emptydir.Config {
	cfg := emptydir.Config{Mounter: mounter, Allocatable: allocatable, Logger: b.logger}
	if config.Enabled(b.k, quotaGate) {
		cfg.Quotas = emptydir.NewProjectQuotas()
	}
	return cfg
}

// shareRoot makes mounts below the root directory propagate between the host and
// containers. A pod that requires it fails without, so an error is not fatal here.
func shareRoot(b base) {
	err := os.MkdirAll(b.cfg.RootDir, 0o750)
	if err == nil {
		err = volume.MakeShared(b.cfg.RootDir)
	}
	if err != nil {
		b.logger.Warn("Failed to share the root directory; mounts do not propagate between host and containers", "err", err)
	}
}

func (v *volumes) components() []component {
	all := []component{func(ctx context.Context) error {
		if v.share != nil {
			v.share()
		}
		return v.Run(ctx)
	}}
	if v.drivers != nil {
		all = append(all, v.drivers.Run, v.csi.Run)
	}
	if v.files != nil {
		all = append(all, v.files.Run)
	}
	return all
}

// A driverRegistry reads and reports CSI drivers.
type driverRegistry struct {
	base    base
	cluster *cluster
}

// CSIDriver implements csi.Drivers.
func (d driverRegistry) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return d.cluster.objects.CSIDriver(ctx, name)
}

// VolumeAttachment implements csi.Drivers.
func (d driverRegistry) VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	return d.cluster.conn.API.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
}

// add adds a driver to the CSINode (rule vol-64).
func (d driverRegistry) add(ctx context.Context, driver csi.Driver) error {
	return d.csiNode().Add(ctx, client.CSIDriver{
		Name: driver.Name, NodeID: driver.NodeID, MaxVolumes: driver.MaxVolumes, Topology: driver.Topology,
	})
}

func (d driverRegistry) remove(ctx context.Context, name string) {
	if err := d.csiNode().Remove(ctx, name); err != nil {
		d.base.logger.Warn("Failed to remove a CSI driver from the CSINode", "driver", name, "err", err)
	}
}

func (d driverRegistry) csiNode() client.CSINode { return csiNodeOf(d.base, d.cluster.conn) }

// csiNodeOf returns the CSINode of the node.
func csiNodeOf(b base, conn connection) client.CSINode {
	return client.CSINode{Client: conn.API, NodeName: b.cfg.NodeName, MigratedPlugins: csimigration.Plugins()}
}
