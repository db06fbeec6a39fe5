// Package volumes has the volumes and resource claims of the second wing of a kubelet.
package volumes

import (
	"context"
	"os"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/csimigration"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
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

// Volumes are the volumes of pods.
type Volumes struct {
	*volume.Manager
	Support Support
	mounts  bool
	drivers *register.Watcher                  // of CSI and DRA; nil: none can register
	local   *stores.LocalObjects               // nil: there are none
	Certs   *certificate.Cache                 // nil: there is no API server
	csi     *csi.Plugin                        // nil: as drivers
	Health  func(*v1.Pod) []v1.PodVolumeHealth // nil: it is not read
	share   func()                             // called before anything is mounted; nil: nothing
}

type Deps struct {
	Cluster     *stores.Cluster      // nil: there is no API server
	Local       *stores.LocalObjects // nil: there are none
	Claims      *Claims              // nil: they are not supported
	Allocatable v1.ResourceList
}

// New constructs the volume manager with every plugin that works with the
// permissions of the process.
func New(b stores.Base, d Deps) (*Volumes, error) {
	v := &Volumes{mounts: volume.CanMount(), local: d.Local}
	p := pluginSet{B: b, v: v, mounter: volume.NewMounter(v.mounts), allocatable: d.Allocatable}
	cfg := volume.Config{
		RootDir: b.Config.RootDir, Mounter: p.mounter, StatsPeriod: b.Configuration.VolumeStatsAggPeriod.Duration, Hooks: b.Metrics.Volumes(), Record: b.Record, Logger: b.Logger,
	}
	if config.Enabled(b.Configuration, volumeHealthGate) {
		cfg.HealthChanged = b.Health.Change
	}
	var err error
	if cfg.SELinuxLabel, err = volume.HostSELinuxLabel(); err != nil {
		return nil, err
	}
	switch {
	case d.Cluster != nil:
		cfg.PersistentVolumes = volume.PersistentVolumeConfig{Claims: d.Cluster.Objects, Node: d.Cluster.Object, Translate: csimigration.Translate}
		if err := p.useCluster(d.Cluster); err != nil {
			return nil, err
		}
	case d.Local != nil:
		if err := p.useLocal(d.Local); err != nil {
			return nil, err
		}
	}
	cfg.PersistentVolumes.SELinuxOnePodOnly = !config.Enabled(b.Configuration, "SELinuxMount")
	if cfg.Plugins, err = p.all(d.Claims); err != nil {
		return nil, err
	}
	if err := compose.Apply(b.Config.Adjust, &cfg); err != nil {
		return nil, err
	}
	v.Support = Support{cfg.Plugins, cfg.PersistentVolumes.Translate}
	if v.Manager, err = volume.New(cfg); err != nil {
		return nil, err
	}
	if cfg.HealthChanged != nil {
		v.Health = v.VolumeHealth
	}
	if v.mounts && stores.HostContainers(b.Config) {
		v.share = func() { shareRoot(b) }
	}
	return v, nil
}

// shareRoot makes mounts below the root directory propagate between the host and
// containers. A pod that requires it fails without, so an error is not fatal here.
func shareRoot(b stores.Base) {
	err := os.MkdirAll(b.Config.RootDir, 0o750)
	if err == nil {
		err = volume.MakeShared(b.Config.RootDir)
	}
	if err != nil {
		b.Logger.Warn("Failed to share the root directory; mounts do not propagate between host and containers", "err", err)
	}
}

func (v *Volumes) Components() []stores.Component {
	all := []stores.Component{func(ctx context.Context) error {
		if v.share != nil {
			v.share()
		}
		return v.Run(ctx)
	}}
	if v.drivers != nil {
		all = append(all, v.drivers.Run, v.csi.Run)
	}
	if v.local != nil && v.local.Run != nil {
		all = append(all, v.local.Run)
	}
	return all
}
