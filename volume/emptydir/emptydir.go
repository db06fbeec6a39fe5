package emptydir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// Name is the name of the plugin.
const Name = "kubernetes.io/empty-dir"

// A Config configures a [Plugin].
type Config struct {
	// Mounter mounts tmpfs and hugetlbfs. Required.
	Mounter volume.Mounter

	// Allocatable are the resources of the node for pods, which bound the size of a tmpfs. If
	// nil, they are unknown.
	Allocatable v1.ResourceList

	// NoSwap is whether tmpfs supports the option noswap. If nil, the version of the kernel
	// determines it, and it is not supported in a user namespace.
	NoSwap *bool

	// Quotas accounts for the usage of volumes on disk of pods with hostUsers: false, whose
	// processes cannot change that; see [NewProjectQuotas]. If nil, or if it does not support
	// the file system, every file of a volume is read to measure it.
	Quotas Quotas

	// If Logger is nil, log records are discarded.
	Logger *slog.Logger
}

// A Plugin is a volume.Plugin and a volume.Refresher.
type Plugin struct {
	cfg   Config
	tmpfs Tmpfs
}

// New returns the plugin, or an error if Config.Mounter is nil.
func New(cfg Config) (*Plugin, error) {
	if cfg.Mounter == nil {
		return nil, errors.New("emptydir: Config.Mounter is nil")
	}
	if cfg.NoSwap == nil {
		cfg.NoSwap = new(kernelNoSwap())
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Plugin{cfg, Tmpfs{cfg.Mounter, cfg.Allocatable, *cfg.NoSwap, cfg.Logger}}, nil
}

// Tmpfs returns the mounter of tmpfs, for other plugins.
func (p *Plugin) Tmpfs() *Tmpfs { return &p.tmpfs }

// Name implements volume.Plugin.
func (*Plugin) Name() string { return Name }

// CanSupport implements volume.Plugin.
func (*Plugin) CanSupport(spec *volume.Spec) bool {
	return spec.PV == nil && spec.Volume != nil && spec.Volume.EmptyDir != nil
}

// Refreshes implements volume.Refresher: the size of a tmpfs follows the pod's memory limit.
func (*Plugin) Refreshes(spec *volume.Spec) bool {
	return spec.Volume != nil && spec.Volume.EmptyDir != nil && spec.Volume.EmptyDir.Medium == v1.StorageMediumMemory
}

// SetUp implements volume.Plugin.
func (p *Plugin) SetUp(ctx context.Context, req volume.Request) (volume.SetUpResult, error) {
	source := req.Spec.Volume.EmptyDir
	dir := req.Dir()
	mounted := volume.SetUpResult{Volume: runtime.Volume{Path: dir, SELinuxRelabel: true}}
	ready, err := p.ready(req.Place)
	if err != nil {
		return volume.SetUpResult{}, fmt.Errorf("emptydir: %w", err)
	}
	mode, err := modeOf(source)
	if err != nil {
		return volume.SetUpResult{}, volume.Definite(fmt.Errorf("emptydir: %w", err))
	}
	var options []string // the root of a new file system has its own mode
	if source.Mode != nil {
		options = []string{fmt.Sprintf("mode=%04o", *source.Mode)}
	}
	switch medium := source.Medium; {
	case medium == v1.StorageMediumDefault && ready:
		return mounted, nil // the content belongs to the pod
	case medium == v1.StorageMediumDefault:
		if err = MakeDir(dir); err == nil {
			err = os.Chmod(dir, mode) // also after an incomplete SetUp
		}
		if err == nil {
			p.assign(dir, req.Pod)
		}
	case medium == v1.StorageMediumMemory:
		err = p.tmpfs.Mount(dir, req.Pod, source.SizeLimit, options...)
	case medium == v1.StorageMediumHugePages || strings.HasPrefix(string(medium), string(v1.StorageMediumHugePagesPrefix)):
		err = p.hugePages(dir, req.Pod, medium, options)
	default:
		err = volume.Definite(fmt.Errorf("%w %q", errMedium, medium))
	}
	if err == nil && !req.Refresh {
		err = req.SetOwnership(ctx, dir, true) // FSGroupPolicy does not apply (rule vol-47)
	}
	if err == nil && !ready {
		err = p.setReady(req.Place)
	}
	if err != nil {
		return volume.SetUpResult{}, fmt.Errorf("emptydir: %w", err)
	}
	return mounted, nil
}

// modeOf returns the mode of the volume's directory.
func modeOf(source *v1.EmptyDirVolumeSource) (fs.FileMode, error) {
	if source.Mode == nil {
		return 0o777, nil
	}
	if *source.Mode < 0 || *source.Mode > 0o1777 {
		return 0, fmt.Errorf("mode %#o must be between 0 and 01777", *source.Mode)
	}
	mode := fs.FileMode(*source.Mode).Perm()
	if *source.Mode&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	return mode, nil
}

func (p *Plugin) hugePages(dir string, pod *v1.Pod, medium v1.StorageMedium, options []string) error {
	page, err := PageSize(pod, medium)
	if err != nil {
		return volume.Definite(err)
	}
	if err := MakeDir(dir); err != nil {
		return err
	}
	point, err := mountedAt(p.cfg.Mounter, dir)
	switch {
	case err != nil:
		return err
	case point != nil && point.Type != "hugetlbfs":
		return fmt.Errorf("%s has a %s mounted on it, not a hugetlbfs", dir, point.Type)
	case point != nil:
		return nil
	}
	return p.cfg.Mounter.MountSensitiveWithoutSystemd("nodev", dir, "hugetlbfs", append([]string{"pagesize=" + page.String()}, options...), nil)
}

// marker returns the file that exists if the volume has been set up completely. It is the kubelet's.
func marker(at volume.Place) string { return filepath.Join(at.PluginDir(), "ready") }

// ready reports whether the volume has been set up and still exists.
func (*Plugin) ready(at volume.Place) (bool, error) {
	for _, path := range []string{marker(at), at.Dir()} {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

func (*Plugin) setReady(at volume.Place) error {
	if err := os.MkdirAll(at.PluginDir(), 0o750); err != nil {
		return err
	}
	return os.WriteFile(marker(at), nil, 0o640)
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(ctx context.Context, at volume.Place) error {
	if err := untrusted.RemoveTree(ctx, at.PluginDir()); err != nil {
		return fmt.Errorf("emptydir: %w", err)
	}
	if err := volume.RemoveTree(ctx, p.cfg.Mounter, at.Dir()); err != nil {
		return fmt.Errorf("emptydir: %w", err)
	}
	return nil
}

// ConstructSpec implements volume.Plugin.
func (p *Plugin) ConstructSpec(at volume.Place) (*volume.Spec, error) {
	if _, err := os.Lstat(at.Dir()); err != nil {
		return nil, fmt.Errorf("emptydir: %w", err)
	}
	source := new(v1.EmptyDirVolumeSource)
	switch point, err := mountedAt(p.cfg.Mounter, at.Dir()); {
	case err != nil:
		return nil, fmt.Errorf("emptydir: %w", err)
	case point != nil && point.Type == "tmpfs":
		source.Medium = v1.StorageMediumMemory
	case point != nil && point.Type == "hugetlbfs":
		source.Medium = v1.StorageMediumHugePages
	}
	return &volume.Spec{Volume: &v1.Volume{Name: at.Name, VolumeSource: v1.VolumeSource{EmptyDir: source}}}, nil
}

// Stats implements volume.Plugin: the usage of the directory on disk, or of the mounted file system.
func (p *Plugin) Stats(ctx context.Context, at volume.Place, _ runtime.Volume) (statsapi.FsStats, error) {
	mounted, err := p.cfg.Mounter.IsMountPoint(at.Dir())
	if err != nil {
		return statsapi.FsStats{}, fmt.Errorf("emptydir: %w", err)
	}
	var s statsapi.FsStats
	if mounted {
		s, err = volume.FSUsage(at.Dir())
	} else {
		s, err = p.usage(ctx, at.Dir())
	}
	if err != nil {
		return statsapi.FsStats{}, fmt.Errorf("emptydir: %w", err)
	}
	return s, nil
}
