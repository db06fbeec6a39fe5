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

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/token"
)

// Name of the plugin.
const Name = "kubernetes.io/csi"

// DefaultTimeout is how long a call may take (vol-61).
const DefaultTimeout = 2 * time.Minute

// Drivers get what the API server knows of drivers. Errors are as in volume.Objects.
type Drivers interface {
	CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error)

	// VolumeAttachment returns what attaching a volume has come to; it is asked
	// for where the CSIDriver requires it.
	VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error)
}

// A Config says what the plugin works with.
type Config struct {
	// Root is the agent's directory, as in volume.Config. Required.
	RootDir string

	// NodeName is the node's name in the API. Required.
	NodeName string

	// Mounter tells what is mounted. Required.
	Mounter volume.Mounter

	// Drivers get CSIDrivers and VolumeAttachments. Nil: there are none.
	Drivers Drivers

	// Objects get the secrets that volumes name. Nil: such volumes are errors.
	Objects volume.Objects

	// Tokens are those of service accounts, for drivers that ask for them. Nil:
	// such volumes are errors.
	Tokens *token.Cache

	// Registered hears of a driver before its volumes are set up, to make it known
	// (CSINode, the annotation csi.volume.kubernetes.io/nodeid, vol-64). Its error
	// is told to the driver. It may block. Nil: nobody does.
	Registered func(ctx context.Context, driver Driver) error

	// Deregistered hears that a driver is gone. It may block. Nil: nobody does.
	Deregistered func(ctx context.Context, name string)

	// Changed is called when volumes that waited for a driver should be tried
	// again: func() { manager.PluginChanged(csi.Name) }. Nil: nobody is.
	Changed func()

	// Called tells of each call to a driver, from many goroutines; it must not
	// block. The kubelet's csi_operations_seconds{driver_name, method_name,
	// grpc_status_code} comes from it (vol-81). Nil: nobody counts.
	Called func(CallInfo)

	// Timeout of a call. Zero: 2 minutes.
	Timeout time.Duration

	// Logger; nil discards.
	Logger *slog.Logger
}

// A CallInfo is one call to a driver.
type CallInfo struct {
	Driver   string
	Method   string // "/csi.v1.Node/NodePublishVolume"
	Code     string // of gRPC: "OK", "DeadlineExceeded"
	Duration time.Duration
}

// A Driver is one that has registered.
type Driver struct {
	Name, Endpoint string

	// NodeID is what the driver calls this node, and MaxVolumes how many volumes
	// it can have here; 0: any number.
	NodeID     string
	MaxVolumes int64

	// Topology are the labels by which it places volumes.
	Topology map[string]string
}

// A Plugin is a volume.Plugin, and a register.Handler.
type Plugin struct {
	cfg Config

	// mu guards the fields below.
	mu      sync.Mutex
	drivers map[string]Driver
	again   map[string]bool // drivers whose volumes are published again and again
}

// New returns the plugin for cfg.
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
	if cfg.Registered == nil {
		cfg.Registered = func(context.Context, Driver) error { return nil }
	}
	if cfg.Deregistered == nil {
		cfg.Deregistered = func(context.Context, string) {}
	}
	if cfg.Changed == nil {
		cfg.Changed = func() {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Plugin{cfg: cfg, drivers: map[string]Driver{}, again: map[string]bool{}}, nil
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

// SupportsMountOptions implements volume.MountOptioner: they are the driver's.
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

// Refreshes implements volume.Refresher: drivers may ask for it (vol-11).
func (p *Plugin) Refreshes(spec *volume.Spec) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.again[driverOf(spec)]
}

// SharedName implements volume.Stager (vol-62).
func (*Plugin) SharedName(spec *volume.Spec) (string, error) {
	if spec.PV == nil {
		return "", nil
	}
	return spec.PV.Spec.CSI.Driver + "^" + spec.PV.Spec.CSI.VolumeHandle, nil
}

// Drivers returns those that have registered, by name.
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
