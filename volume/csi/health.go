package csi

import (
	"context"
	"errors"
	"fmt"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
)

// Health implements volume.HealthReporter, from the driver if it has GET_VOLUME_HEALTH. Categories that
// this agent does not know are ignored.
func (p *Plugin) Health(ctx context.Context, at volume.Place) ([]v1.VolumeHealthCondition, error) {
	target, dataDir := p.publishTarget(at)
	saved, err := load(dataDir)
	if err != nil {
		return nil, fmt.Errorf("csi: %w", err)
	}
	d, err := p.driver(saved.DriverName)
	if err != nil {
		return nil, fmt.Errorf("csi: %w", err)
	}
	req := &csipb.NodeGetVolumeHealthRequest{VolumeId: saved.VolumeHandle, VolumePublishPath: target}
	var conditions []v1.VolumeHealthCondition
	err = p.call(ctx, d, func(ctx context.Context, node csipb.NodeClient) error {
		can, err := capabilitiesOf(ctx, node)
		if err != nil {
			return err
		}
		if !can[csipb.NodeServiceCapability_RPC_GET_VOLUME_HEALTH] {
			return errors.ErrUnsupported
		}
		spec, err := p.ConstructSpec(at)
		if err == nil && spec.PV != nil && can[csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME] {
			req.StagingTargetPath, _ = p.stagingDir(spec)
		}
		answer, err := node.NodeGetVolumeHealth(ctx, req)
		if err != nil {
			return fmt.Errorf("NodeGetVolumeHealth: %w", err)
		}
		conditions = healthConditions(answer.GetVolumeHealth().GetHealthStatuses())
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("csi: %w", err)
	}
	return conditions, nil
}

// healthConditions returns the conditions of the categories that the API has.
func healthConditions(entries []*csipb.VolumeHealth_VolumeHealthEntry) []v1.VolumeHealthCondition {
	var list []v1.VolumeHealthCondition
	for _, e := range entries {
		c := v1.VolumeHealthCondition{Reason: e.GetReason(), Message: e.GetMessage()}
		switch e.GetStatus() {
		case csipb.VolumeHealthErrorType_INACCESSIBLE:
			c.Status = v1.VolumeHealthInaccessible
		case csipb.VolumeHealthErrorType_DATA_LOSS:
			c.Status = v1.VolumeHealthDataLoss
		case csipb.VolumeHealthErrorType_DEGRADED:
			c.Status = v1.VolumeHealthDegraded
		default:
			continue
		}
		list = append(list, c)
	}
	return list
}
