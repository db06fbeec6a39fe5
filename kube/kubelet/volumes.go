package kubelet

import (
	"context"
	"os"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/csimigration"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/certificate"
	"github.com/kubeparts/kubeparts/volume/csi"
	"github.com/kubeparts/kubeparts/volume/csi/register"
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

type volumeDeps struct {
	cluster     *cluster     // nil: there is no API server
	files       *objectFiles // nil: there are none
	claims      *claims      // nil: they are not supported
	allocatable v1.ResourceList
}

// newVolumes constructs the volume manager with every plugin that works with the
// permissions of the process.
func newVolumes(b base, d volumeDeps) (*volumes, error) {
	v := &volumes{mounts: volume.CanMount(), files: d.files}
	p := volumePlugins{b: b, v: v, mounter: volume.NewMounter(v.mounts), allocatable: func() v1.ResourceList { return d.allocatable }}
	cfg := volume.Config{
		RootDir: b.cfg.RootDir, Mounter: p.mounter, StatsPeriod: b.k.VolumeStatsAggPeriod.Duration, Hooks: b.metrics.Volumes(), Record: b.record, Logger: b.logger,
	}
	if config.Enabled(b.k, volumeHealthGate) {
		cfg.HealthChanged = b.health.change
	}
	var err error
	if cfg.SELinuxLabel, err = volume.HostSELinuxLabel(); err != nil {
		return nil, err
	}
	switch {
	case d.cluster != nil:
		cfg.PersistentVolumes = persistentVolumes(d.cluster)
		if err := p.useCluster(d.cluster); err != nil {
			return nil, err
		}
	case d.files != nil:
		p.objects = d.files
	}
	cfg.PersistentVolumes.SELinuxOnePodOnly = !config.Enabled(b.k, "SELinuxMount")
	if cfg.Plugins, err = p.all(d.claims); err != nil {
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
	if v.mounts && !b.cfg.Runtime.Processes {
		v.share = func() { shareRoot(b) }
	}
	return v, nil
}

// persistentVolumes returns the access to the claims and the Node object of a cluster.
func persistentVolumes(c *cluster) volume.PersistentVolumeConfig {
	return volume.PersistentVolumeConfig{
		Claims: c.objects, Translate: csimigration.Translate, Node: c.object.object, Attached: c.object.attached, InUseReported: c.object.inUse, Expanded: c.objects.ClaimExpanded,
	}
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
