package volumes

import (
	"context"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
)

// csi returns the plugin for the volumes of CSI drivers.
func (p *VolumePlugins) csi() (volume.Plugin, error) {
	cfg := csi.Config{
		RootDir: p.B.Config.RootDir, NodeName: p.B.Config.NodeName, Mounter: p.mounter, Objects: p.objects, Tokens: p.tokens,
		Changed: func() { p.v.PluginChanged(csi.Name) }, Called: p.B.Metrics.Remote.CSI, Logger: p.B.Logger,
	}
	if p.cluster != nil {
		registry := driverRegistry{p.B, p.cluster}
		cfg.Drivers, cfg.Registered, cfg.Deregistered = registry, registry.add, registry.remove
	}
	var err error
	p.v.csi, err = csi.New(cfg)
	return p.v.csi, err
}

// A driverRegistry reads and reports CSI drivers.
type driverRegistry struct {
	base    stores.Base
	cluster *stores.Cluster
}

// CSIDriver implements csi.Drivers.
func (d driverRegistry) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return d.cluster.Objects.CSIDriver(ctx, name)
}

// VolumeAttachment implements csi.Drivers.
func (d driverRegistry) VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	return d.cluster.Conn.API.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
}

// add adds a driver to the CSINode (rule vol-64).
func (d driverRegistry) add(ctx context.Context, driver csi.Driver) error {
	return d.csiNode().Add(ctx, client.CSIDriver{
		Name: driver.Name, NodeID: driver.NodeID, MaxVolumes: driver.MaxVolumes, Topology: driver.Topology,
	})
}

func (d driverRegistry) remove(ctx context.Context, name string) {
	if err := d.csiNode().Remove(ctx, name); err != nil {
		d.base.Logger.Warn("Failed to remove a CSI driver from the CSINode", "driver", name, "err", err)
	}
}

func (d driverRegistry) csiNode() client.CSINode { return stores.CsiNodeOf(d.base, d.cluster.Conn) }
