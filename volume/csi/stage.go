package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// Stage implements volume.Stager: a driver with STAGE_UNSTAGE_VOLUME stages the volume
// once per node.
func (p *Plugin) Stage(ctx context.Context, req volume.Request) error {
	if err := p.stage(ctx, &req); err != nil {
		return fmt.Errorf("csi: %w", err)
	}
	return nil
}

func (p *Plugin) stage(ctx context.Context, req *volume.Request) error {
	from := req.Spec.PV.Spec.CSI
	d, err := p.driver(from.Driver)
	if err != nil {
		return err
	}
	publishContext, err := p.publishContext(ctx, req.Spec)
	if err != nil {
		return err
	}
	secrets, err := p.refSecrets(ctx, "NodeStageSecretRef", from.NodeStageSecretRef)
	if err != nil {
		return err
	}
	target, dataDir := p.stagingDir(req.Spec)
	earlier, err := maybeStaged(target, dataDir) // what a failed call of this step does not revert
	if err != nil {
		return err
	}
	err = p.call(ctx, d, func(ctx context.Context, node csipb.NodeClient) error {
		can, err := capabilitiesOf(ctx, node)
		if err != nil || !can[csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME] {
			return err
		}
		if err := saveStaged(dataDir, req.Spec); err != nil {
			return err
		}
		if err := os.MkdirAll(target, 0o750); err != nil {
			return err
		}
		_, err = node.NodeStageVolume(ctx, &csipb.NodeStageVolumeRequest{
			VolumeId: from.VolumeHandle, PublishContext: publishContext, StagingTargetPath: target,
			VolumeCapability: capability(req.Spec, can, req.MountOptions, req.FSGroup),
			Secrets:          secrets, VolumeContext: attributes(req.Spec),
		})
		return err
	})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("NodeStageVolume: %w", err)
	if final(err) && !earlier && p.removeDir(target) == nil && removeData(dataDir) == nil {
		return volume.Definite(err)
	}
	return err
}

// Unstage implements volume.Stager.
func (p *Plugin) Unstage(ctx context.Context, spec *volume.Spec) error {
	if err := p.unstage(ctx, spec); err != nil {
		return fmt.Errorf("csi: %w", err)
	}
	return nil
}

// unstage calls NodeUnstageVolume until the driver returns OK. The data that Stage wrote before its call
// shows that one is due; a driver may remove the staging directory and fail afterwards.
func (p *Plugin) unstage(ctx context.Context, spec *volume.Spec) error {
	target, dataDir := p.stagingDir(spec)
	staged, err := maybeStaged(target, dataDir)
	if err != nil {
		return err
	}
	if staged {
		if err := p.callUnstage(ctx, spec.PV.Spec.CSI, target); err != nil {
			return err
		}
	}
	if err := p.removeDir(target); err != nil {
		return err
	}
	if err := removeData(dataDir); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(dataDir)) // fails unless this was the driver's last volume
	if spec.Block {
		return p.removeOtherData(spec.PV.Spec.CSI)
	}
	return nil
}

func (p *Plugin) callUnstage(ctx context.Context, from *v1.CSIPersistentVolumeSource, target string) error {
	d, err := p.driver(from.Driver)
	if err != nil {
		return err
	}
	return p.call(ctx, d, func(ctx context.Context, node csipb.NodeClient) error {
		can, err := capabilitiesOf(ctx, node)
		if err != nil || !can[csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME] {
			return err
		}
		if _, err := node.NodeUnstageVolume(ctx, &csipb.NodeUnstageVolumeRequest{VolumeId: from.VolumeHandle, StagingTargetPath: target}); err != nil {
			return fmt.Errorf("NodeUnstageVolume: %w", err)
		}
		return nil
	})
}

// Expand implements volume.Expander. Volumes of a driver without
// EXPAND_VOLUME are not expanded on the node.
func (p *Plugin) Expand(ctx context.Context, req volume.Request, size resource.Quantity) (resource.Quantity, error) {
	grown := size
	from := req.Spec.PV.Spec.CSI
	d, err := p.driver(from.Driver)
	if err != nil {
		return size, fmt.Errorf("csi: %w", err)
	}
	secrets, err := p.refSecrets(ctx, "NodeExpandSecretRef", from.NodeExpandSecretRef)
	if err != nil {
		return size, fmt.Errorf("csi: %w", err)
	}
	err = p.call(ctx, d, func(ctx context.Context, node csipb.NodeClient) error {
		can, err := capabilitiesOf(ctx, node)
		if err != nil || !can[csipb.NodeServiceCapability_RPC_EXPAND_VOLUME] {
			return err
		}
		target, _ := p.publishTarget(req.Place)
		expand := &csipb.NodeExpandVolumeRequest{
			VolumeId: from.VolumeHandle, VolumePath: target, Secrets: secrets,
			CapacityRange:    &csipb.CapacityRange{RequiredBytes: size.Value()},
			VolumeCapability: capability(req.Spec, can, req.MountOptions, nil),
		}
		if can[csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME] {
			expand.StagingTargetPath = p.stagedAt(&req)
		}
		answer, err := node.NodeExpandVolume(ctx, expand)
		if err == nil && answer.GetCapacityBytes() > 0 {
			grown = *resource.NewQuantity(answer.GetCapacityBytes(), resource.BinarySI)
		}
		return err
	})
	if err != nil {
		return size, fmt.Errorf("csi: NodeExpandVolume: %w", err)
	}
	return grown, nil
}

// Stats implements volume.Plugin, from the driver if it has GET_VOLUME_STATS.
func (p *Plugin) Stats(ctx context.Context, at volume.Place, _ runtime.Volume) (statsapi.FsStats, error) {
	var s statsapi.FsStats
	target, dataDir := p.publishTarget(at)
	saved, err := load(dataDir)
	if err != nil {
		return s, fmt.Errorf("csi: %w", err)
	}
	d, err := p.driver(saved.DriverName)
	if err != nil {
		return s, fmt.Errorf("csi: %w", err)
	}
	err = p.call(ctx, d, func(ctx context.Context, node csipb.NodeClient) error {
		can, err := capabilitiesOf(ctx, node)
		if err != nil {
			return err
		}
		if !can[csipb.NodeServiceCapability_RPC_GET_VOLUME_STATS] {
			return errors.ErrUnsupported
		}
		answer, err := node.NodeGetVolumeStats(ctx, &csipb.NodeGetVolumeStatsRequest{VolumeId: saved.VolumeHandle, VolumePath: target})
		if err != nil {
			return fmt.Errorf("NodeGetVolumeStats: %w", err)
		}
		s.Time = metav1.Now()
		for _, u := range answer.GetUsage() {
			usage(&s, u)
		}
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("csi: %w", err)
	}
	return s, nil
}

func usage(s *statsapi.FsStats, u *csipb.VolumeUsage) {
	of := func(n int64) *uint64 {
		if n < 0 {
			return nil
		}
		v := uint64(n)
		return &v
	}
	switch u.GetUnit() {
	case csipb.VolumeUsage_BYTES:
		s.CapacityBytes, s.AvailableBytes, s.UsedBytes = of(u.GetTotal()), of(u.GetAvailable()), of(u.GetUsed())
	case csipb.VolumeUsage_INODES:
		s.Inodes, s.InodesFree, s.InodesUsed = of(u.GetTotal()), of(u.GetAvailable()), of(u.GetUsed())
	}
}
