package csi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/payload"
	"github.com/kubeparts/kubeparts/volume/token"
)

// Name is the name of the plugin.
const Name = "kubernetes.io/csi"

// DefaultTimeout is the default of Config.Timeout.
const DefaultTimeout = 2 * time.Minute

// Drivers reads and writes the API objects of drivers. Errors are as in payload.Objects.
type Drivers interface {
	CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error)

	// VolumeAttachment returns the attachment of a volume. It is called if the CSIDriver
	// requires attachment.
	VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error)

	// DriverRegistered is called when a driver registers, before its volumes are set up, to
	// update the CSINode and the annotation csi.volume.kubernetes.io/nodeid. Its error is
	// returned to the driver, and the registration fails. Run calls it when the limit of a
	// driver has changed. It may block.
	DriverRegistered(ctx context.Context, driver Driver) error

	// DriverDeregistered is called after a driver has deregistered. It may block.
	DriverDeregistered(ctx context.Context, name string)
}

// A Config configures a [Plugin].
type Config struct {
	// RootDir is the agent's directory, as in volume.Config. Required.
	RootDir string

	// NodeName is the name of the node in the API. Required.
	NodeName string

	// Mounter lists and removes mounts. Required.
	Mounter volume.Mounter

	// Drivers has the CSIDrivers, the VolumeAttachments and the CSINode. If nil, there are
	// none.
	Drivers Drivers

	// Objects returns the Secrets that volumes refer to. If nil, such volumes fail.
	Objects payload.Objects

	// Tokens returns service account tokens for drivers that require them. If nil, volumes of
	// such drivers fail.
	Tokens *token.Cache

	// Changed is called when volumes that wait for a driver must be retried; it should call
	// manager.PluginChanged(csi.Name). It may be nil.
	Changed func()

	// Called is called concurrently after each call to a driver and must not block. The
	// kubelet's csi_operations_seconds{driver_name, method_name, grpc_status_code} is computed
	// from it. It may be nil.
	Called func(CallInfo)

	// Timeout bounds a call to a driver. Zero means 2 minutes.
	Timeout time.Duration

	// If Logger is nil, log records are discarded.
	Logger *slog.Logger
}

// A CallInfo describes a completed call to a driver.
type CallInfo struct {
	Driver   string
	Method   string // "/csi.v1.Node/NodePublishVolume"
	Code     string // gRPC status code, such as "OK" or "DeadlineExceeded"
	Duration time.Duration
}

// A Driver is a registered driver.
type Driver struct {
	Name, Endpoint string

	// NodeID is the driver's ID of this node, and MaxVolumes the maximum number of volumes on
	// the node; 0 means no limit.
	NodeID     string
	MaxVolumes int64

	// Topology is the accessible topology of the node.
	Topology map[string]string
}

// A Plugin is a volume.Plugin, and a register.Handler.
type Plugin struct {
	cfg  Config
	ran  runonce.Guard
	wake chan struct{} // capacity 1; Run must update limits

	// mu guards the fields below.
	mu      sync.Mutex
	drivers map[string]Driver
	again   map[string]bool // drivers with RequiresRepublish

	exhausted map[string]bool // drivers whose last call failed because of their limit
}

// New returns the plugin, or an error if cfg is invalid.
func New(cfg Config) (*Plugin, error) {
	switch {
	case !filepath.IsAbs(cfg.RootDir):
		return nil, fmt.Errorf("csi: Config.RootDir is %q; it must be an absolute path", cfg.RootDir)
	case cfg.NodeName == "":
		return nil, errors.New("csi: Config.NodeName is empty")
	case cfg.Mounter == nil:
		return nil, errors.New("csi: Config.Mounter is nil")
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("csi: Config.Timeout is %v", cfg.Timeout)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Changed == nil {
		cfg.Changed = func() {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Plugin{
		cfg: cfg, wake: make(chan struct{}, 1), drivers: map[string]Driver{}, again: map[string]bool{}, exhausted: map[string]bool{},
	}, nil
}

// Name implements volume.Plugin.
func (*Plugin) Name() string { return Name }

// CanSupport implements volume.Plugin.
func (*Plugin) CanSupport(spec *volume.Spec) bool {
	if spec.PV != nil {
		return spec.PV.Spec.CSI != nil
	}
	return spec.Volume != nil && spec.Volume.CSI != nil
}

// SupportsMountOptions implements volume.MountOptioner: the driver applies them.
func (*Plugin) SupportsMountOptions() bool { return true }

// SupportsSELinuxMount implements volume.SELinuxMounter: the driver's CSIDriver permits it.
func (p *Plugin) SupportsSELinuxMount(ctx context.Context, spec *volume.Spec) (bool, error) {
	about, err := p.about(ctx, driverOf(spec))
	if err != nil {
		return false, fmt.Errorf("csi: %w", err)
	}
	return about != nil && about.SELinuxMount != nil && *about.SELinuxMount, nil
}

// SupportsBlock implements volume.BlockMapper.
func (*Plugin) SupportsBlock() bool { return true }

// Refreshes implements volume.Refresher: a CSIDriver with RequiresRepublish requires it.
func (p *Plugin) Refreshes(spec *volume.Spec) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.again[driverOf(spec)]
}

// SharedName implements volume.Stager.
func (*Plugin) SharedName(spec *volume.Spec) (string, error) {
	if spec.PV == nil {
		return "", nil
	}
	return spec.PV.Spec.CSI.Driver + "^" + spec.PV.Spec.CSI.VolumeHandle, nil
}

// Drivers returns the registered drivers by name. The caller owns the result.
func (p *Plugin) Drivers() map[string]Driver {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[string]Driver, len(p.drivers))
	for name, d := range p.drivers {
		all[name] = d
	}
	return all
}

func driverOf(spec *volume.Spec) string {
	switch {
	case spec.PV != nil && spec.PV.Spec.CSI != nil:
		return spec.PV.Spec.CSI.Driver
	case spec.Volume != nil && spec.Volume.CSI != nil:
		return spec.Volume.CSI.Driver
	}
	return ""
}
