package nfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// Name is the name of the plugin.
const Name = "kubernetes.io/nfs"

// unmountTimeout is the time after which an unmount is forced.
const unmountTimeout = time.Minute

// A Config configures a [Plugin].
type Config struct {
	// Mounter mounts exports. If it is a mount.MounterForceUnmounter, as that of the host is on
	// Linux, unmounts that hang are forced. Required.
	Mounter volume.Mounter
}

// A Plugin is a volume.Plugin and a volume.MountOptioner.
type Plugin struct{ cfg Config }

// New returns the plugin, or an error if Config.Mounter is nil.
func New(cfg Config) (*Plugin, error) {
	if cfg.Mounter == nil {
		return nil, errors.New("nfs: Config.Mounter is nil")
	}
	if err := compose.Check(cfg.Mounter, reflect.TypeFor[mount.MounterForceUnmounter]()); err != nil {
		return nil, fmt.Errorf("nfs: Config.Mounter: %w", err)
	}
	return &Plugin{cfg}, nil
}

// Name implements volume.Plugin.
func (*Plugin) Name() string { return Name }

// CanSupport implements volume.Plugin.
func (*Plugin) CanSupport(spec *volume.Spec) bool {
	if spec.PV != nil {
		return spec.PV.Spec.NFS != nil
	}
	return spec.Volume != nil && spec.Volume.NFS != nil
}

// SupportsMountOptions implements volume.MountOptioner.
func (*Plugin) SupportsMountOptions() bool { return true }

// sourceOf returns the export of a volume, and whether it is read-only.
func sourceOf(spec *volume.Spec) (from *v1.NFSVolumeSource, readOnly bool) {
	if spec.PV != nil {
		return spec.PV.Spec.NFS, spec.ReadOnly || spec.PV.Spec.NFS.ReadOnly
	}
	return spec.Volume.NFS, spec.Volume.NFS.ReadOnly
}

// device returns the argument of the mount program, "server:/path".
func device(from *v1.NFSVolumeSource) (string, error) {
	server := from.Server
	if addr, err := netip.ParseAddr(server); err == nil && addr.Is6() {
		server = "[" + server + "]"
	}
	switch {
	case server == "":
		return "", errors.New("server is empty")
	case strings.HasPrefix(server, "-") || strings.ContainsFunc(server, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f }):
		return "", fmt.Errorf("server %q is invalid", server)
	case !path.IsAbs(from.Path) || strings.Contains(from.Path, "\x00"):
		return "", fmt.Errorf("path %q must be an absolute path", from.Path)
	}
	return server + ":" + from.Path, nil
}

// SetUp implements volume.Plugin.
func (p *Plugin) SetUp(_ context.Context, req volume.Request) (volume.SetUpResult, error) {
	from, readOnly := sourceOf(req.Spec)
	source, err := device(from)
	if err != nil {
		return volume.SetUpResult{}, volume.Definite(fmt.Errorf("nfs: %w", err))
	}
	if err := p.mount(source, req.Dir(), options(readOnly, req.MountOptions)); err != nil {
		return volume.SetUpResult{}, fmt.Errorf("nfs: mount %s: %w", source, err)
	}
	return volume.SetUpResult{Volume: runtime.Volume{Path: req.Dir(), ReadOnly: readOnly}}, nil
}

// options returns the options of a mount without duplicates.
func options(readOnly bool, of []string) []string {
	var all []string
	if readOnly {
		all = append(all, "ro")
	}
	for _, o := range of {
		if !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all
}

// mount mounts an export at dir unless dir is a mount point. It reverts a mount that fails.
func (p *Plugin) mount(source, dir string, options []string) error {
	mounted, err := volume.IsMountPoint(p.cfg.Mounter, dir)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if err := p.cfg.Mounter.MountSensitiveWithoutSystemd(source, dir, "nfs", options, nil); err != nil {
		return errors.Join(err, p.unmount(dir))
	}
	return nil
}

// unmount unmounts dir while it is a mount point, and removes it.
func (p *Plugin) unmount(dir string) error {
	for {
		mounted, err := volume.IsMountPoint(p.cfg.Mounter, dir)
		switch {
		case err != nil && mount.IsCorruptedMnt(err): // the server has lost the export
			mounted = true
		case err != nil:
			return err
		}
		if !mounted {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		if force, ok := compose.As[mount.MounterForceUnmounter](p.cfg.Mounter); ok {
			err = force.UnmountWithForce(dir, unmountTimeout)
		} else {
			err = p.cfg.Mounter.Unmount(dir)
		}
		if err != nil {
			return err
		}
	}
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(_ context.Context, at volume.Place) error {
	if err := p.unmount(at.Dir()); err != nil {
		return fmt.Errorf("nfs: %w", err)
	}
	return nil
}

// ConstructSpec implements volume.Plugin. The export is unknown; TearDown does not require it.
func (p *Plugin) ConstructSpec(at volume.Place) (*volume.Spec, error) {
	mounted, err := volume.IsMountPoint(p.cfg.Mounter, at.Dir())
	if err == nil && !mounted { // otherwise the server may not answer
		_, err = os.Lstat(at.Dir())
	}
	if err != nil && !mount.IsCorruptedMnt(err) {
		return nil, fmt.Errorf("nfs: %w", err)
	}
	return &volume.Spec{Volume: &v1.Volume{Name: at.Name, VolumeSource: v1.VolumeSource{NFS: new(v1.NFSVolumeSource)}}}, nil
}

// Stats implements volume.Plugin: the usage of the exported file system.
func (*Plugin) Stats(_ context.Context, at volume.Place, _ runtime.Volume) (statsapi.FsStats, error) {
	usage, err := volume.FSUsage(at.Dir())
	if err != nil {
		return statsapi.FsStats{}, fmt.Errorf("nfs: %w", err)
	}
	return usage, nil
}
