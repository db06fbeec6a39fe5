package csitest

import (
	"context"
	"os"
	"path/filepath"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Size is the reported size of each volume in bytes.
const Size = 1 << 30

// NodeGetInfo implements the CSI API.
func (d *Driver) NodeGetInfo(context.Context, *csipb.NodeGetInfoRequest) (*csipb.NodeGetInfoResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail["NodeGetInfo"]; err != nil {
		return nil, err
	}
	id := d.NodeID
	if id == "" {
		id = "node-of-" + d.Name
	}
	return &csipb.NodeGetInfoResponse{NodeId: id, MaxVolumesPerNode: d.MaxVolumes}, nil
}

// NodeGetCapabilities implements the CSI API.
func (d *Driver) NodeGetCapabilities(context.Context, *csipb.NodeGetCapabilitiesRequest) (*csipb.NodeGetCapabilitiesResponse, error) {
	answer := new(csipb.NodeGetCapabilitiesResponse)
	for n := range csipb.NodeServiceCapability_RPC_Type_name {
		t := csipb.NodeServiceCapability_RPC_Type(n)
		if t == csipb.NodeServiceCapability_RPC_UNKNOWN || !d.can(t) {
			continue
		}
		answer.Capabilities = append(answer.Capabilities, &csipb.NodeServiceCapability{
			Type: &csipb.NodeServiceCapability_Rpc{Rpc: &csipb.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return answer, nil
}

// NodeStageVolume implements the CSI API.
func (d *Driver) NodeStageVolume(_ context.Context, r *csipb.NodeStageVolumeRequest) (*csipb.NodeStageVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail["NodeStageVolume"]; err != nil {
		return nil, err
	}
	v := d.volumeLocked(r.GetVolumeId())
	switch info, err := os.Stat(r.GetStagingTargetPath()); {
	case r.GetVolumeId() == "" || r.GetVolumeCapability().GetAccessMode() == nil:
		return nil, invalid("the request lacks volume or capability")
	case err != nil || !info.IsDir():
		return nil, invalid("staging path %q is not a directory", r.GetStagingTargetPath())
	case v.Staged != "" && v.Staged != r.GetStagingTargetPath():
		return nil, status.Errorf(codes.FailedPrecondition, "staged at %s already", v.Staged)
	}
	if err := os.MkdirAll(d.Path(r.GetVolumeId()), 0o777); err != nil {
		return nil, err
	}
	if r.GetVolumeCapability().GetMount() != nil {
		if err := d.bind(d.Path(r.GetVolumeId()), r.GetStagingTargetPath()); err != nil {
			return nil, err
		}
	}
	v.Staged, v.Stage = r.GetStagingTargetPath(), r
	if err := d.failAfterLocked("NodeStageVolume"); err != nil {
		return nil, err
	}
	v.Stages++
	return new(csipb.NodeStageVolumeResponse), nil
}

// NodeUnstageVolume implements the CSI API.
func (d *Driver) NodeUnstageVolume(_ context.Context, r *csipb.NodeUnstageVolumeRequest) (*csipb.NodeUnstageVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail["NodeUnstageVolume"]; err != nil {
		return nil, err
	}
	v := d.volumeLocked(r.GetVolumeId())
	d.pruneLocked(v)
	if len(v.Published) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "%s is published", r.GetVolumeId())
	}
	if err := d.unbind(r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	v.Staged, v.Stage = "", nil
	if err := d.failAfterLocked("NodeUnstageVolume"); err != nil {
		return nil, err
	}
	v.Unstages++
	return new(csipb.NodeUnstageVolumeResponse), nil
}

// NodePublishVolume implements the CSI API.
func (d *Driver) NodePublishVolume(_ context.Context, r *csipb.NodePublishVolumeRequest) (*csipb.NodePublishVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail["NodePublishVolume"]; err != nil {
		return nil, err
	}
	v := d.volumeLocked(r.GetVolumeId())
	from := d.Path(r.GetVolumeId())
	switch info, err := os.Stat(filepath.Dir(r.GetTargetPath())); {
	case r.GetVolumeId() == "" || r.GetVolumeCapability().GetAccessMode() == nil:
		return nil, invalid("the request lacks volume or capability")
	case err != nil || !info.IsDir():
		return nil, invalid("the directory of target path %q does not exist", r.GetTargetPath())
	case r.GetStagingTargetPath() != v.Staged:
		return nil, status.Errorf(codes.FailedPrecondition, "staged at %q, not at %q", v.Staged, r.GetStagingTargetPath())
	}
	if err := os.MkdirAll(from, 0o777); err != nil {
		return nil, err
	}
	if r.GetVolumeCapability().GetBlock() != nil {
		if err := d.publishDevice(d.Devices[r.GetVolumeId()], r.GetTargetPath()); err != nil {
			return nil, err
		}
	} else {
		var options []string
		if r.GetReadonly() {
			options = append(options, "ro")
		}
		if err := d.bind(from, r.GetTargetPath(), options...); err != nil {
			return nil, err
		}
	}
	v.Published[r.GetTargetPath()] = r
	if err := d.failAfterLocked("NodePublishVolume"); err != nil {
		return nil, err
	}
	v.Publishes++
	return new(csipb.NodePublishVolumeResponse), nil
}

// publishDevice creates the published file and mounts the device over it, unless it is mounted.
func (d *Driver) publishDevice(device, target string) error {
	if device != "" {
		if mounted, err := d.Mounter.IsMountPoint(target); err == nil && mounted {
			return nil
		}
	}
	if err := os.WriteFile(target, nil, 0o600); err != nil || device == "" {
		return err
	}
	return d.Mounter.Mount(device, target, "", []string{"bind"})
}

// NodeUnpublishVolume implements the CSI API.
func (d *Driver) NodeUnpublishVolume(_ context.Context, r *csipb.NodeUnpublishVolumeRequest) (*csipb.NodeUnpublishVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail["NodeUnpublishVolume"]; err != nil {
		return nil, err
	}
	if r.GetVolumeId() == "" || r.GetTargetPath() == "" {
		return nil, invalid("the request lacks volume or target")
	}
	if err := d.unbind(r.GetTargetPath()); err != nil {
		return nil, err
	}
	delete(d.volumeLocked(r.GetVolumeId()).Published, r.GetTargetPath())
	return new(csipb.NodeUnpublishVolumeResponse), nil
}

// NodeExpandVolume implements the CSI API.
func (d *Driver) NodeExpandVolume(_ context.Context, r *csipb.NodeExpandVolumeRequest) (*csipb.NodeExpandVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail["NodeExpandVolume"]; err != nil {
		return nil, err
	}
	v := d.volumeLocked(r.GetVolumeId())
	if v.Published[r.GetVolumePath()] == nil {
		return nil, status.Errorf(codes.NotFound, "%s is not published at %q", r.GetVolumeId(), r.GetVolumePath())
	}
	v.Size = max(v.Size, r.GetCapacityRange().GetRequiredBytes())
	return &csipb.NodeExpandVolumeResponse{CapacityBytes: v.Size}, nil
}

// NodeGetVolumeStats implements the CSI API.
func (d *Driver) NodeGetVolumeStats(_ context.Context, r *csipb.NodeGetVolumeStatsRequest) (*csipb.NodeGetVolumeStatsResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail["NodeGetVolumeStats"]; err != nil {
		return nil, err
	}
	if d.volumeLocked(r.GetVolumeId()).Published[r.GetVolumePath()] == nil {
		return nil, status.Errorf(codes.NotFound, "%s is not published at %q", r.GetVolumeId(), r.GetVolumePath())
	}
	return &csipb.NodeGetVolumeStatsResponse{Usage: []*csipb.VolumeUsage{
		{Unit: csipb.VolumeUsage_BYTES, Total: Size, Available: Size - 4096, Used: 4096},
		{Unit: csipb.VolumeUsage_INODES, Total: 1000, Available: 999, Used: 1},
	}}, nil
}

// NodeGetVolumeHealth implements the CSI API.
func (d *Driver) NodeGetVolumeHealth(_ context.Context, r *csipb.NodeGetVolumeHealthRequest) (*csipb.NodeGetVolumeHealthResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail["NodeGetVolumeHealth"]; err != nil {
		return nil, err
	}
	health := &csipb.VolumeHealth{VolumeId: r.GetVolumeId()}
	if message := d.unwell[r.GetVolumeId()]; message != "" {
		health.HealthStatuses = []*csipb.VolumeHealth_VolumeHealthEntry{{Status: csipb.VolumeHealthErrorType_DEGRADED, Reason: "Unwell", Message: message}}
	}
	return &csipb.NodeGetVolumeHealthResponse{VolumeHealth: health}, nil
}

// GetPluginInfo implements the CSI API.
func (d *Driver) GetPluginInfo(context.Context, *csipb.GetPluginInfoRequest) (*csipb.GetPluginInfoResponse, error) {
	return &csipb.GetPluginInfoResponse{Name: d.Name, VendorVersion: "1"}, nil
}

// GetPluginCapabilities implements the CSI API.
func (d *Driver) GetPluginCapabilities(context.Context, *csipb.GetPluginCapabilitiesRequest) (*csipb.GetPluginCapabilitiesResponse, error) {
	return new(csipb.GetPluginCapabilitiesResponse), nil
}

// Probe implements the CSI API.
func (d *Driver) Probe(context.Context, *csipb.ProbeRequest) (*csipb.ProbeResponse, error) {
	return new(csipb.ProbeResponse), nil
}
