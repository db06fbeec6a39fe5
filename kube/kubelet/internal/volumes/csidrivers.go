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
func (p *pluginSet) csi() (volume.Plugin, error) {
	cfg := csi.Config{
		RootDir: p.B.Config.RootDir, NodeName: p.B.Config.NodeName, Mounter: p.mounter, Objects: p.objects, Tokens: p.tokens,
		Changed: func() { p.v.PluginChanged(csi.Name) }, Called: p.B.Metrics.Remote.CSI, Logger: p.B.Logger,
	}
	if p.cluster != nil {
		cfg.Drivers = driverRegistry{p.B, p.cluster}
	}
	var err error
	p.v.csi, err = csi.New(cfg)
	return p.v.csi, err
}

// A driverRegistry implements csi.Drivers.
type driverRegistry struct {
	base    stores.Base
	cluster *stores.Cluster
}

func (d driverRegistry) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return d.cluster.Objects.CSIDriver(ctx, name)
}

func (d driverRegistry) VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	return d.cluster.Conn.API.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
}

// DriverRegistered adds a driver to the CSINode (rule vol-64).
func (d driverRegistry) DriverRegistered(ctx context.Context, driver csi.Driver) error {
	return d.csiNode().Add(ctx, client.CSIDriver{
		Name: driver.Name, NodeID: driver.NodeID, MaxVolumes: driver.MaxVolumes, Topology: driver.Topology,
	})
}

// DriverDeregistered removes a driver from the CSINode.
func (d driverRegistry) DriverDeregistered(ctx context.Context, name string) {
	if err := d.csiNode().Remove(ctx, name); err != nil {
		d.base.Logger.Warn("Failed to remove a CSI driver from the CSINode", "driver", name, "err", err)
	}
}

func (d driverRegistry) csiNode() client.CSINode { return stores.CSINodeOf(d.base, d.cluster.Conn) }
