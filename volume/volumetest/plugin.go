package volumetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// A Plugin is a volume.Plugin whose volumes are directories with one file. It implements all optional
// interfaces of package volume; its fields determine their results and must be set before the first
// use. The zero value supports every volume and has no optional capability. Safe for concurrent use.
type Plugin struct {
	// Kind is the name of the plugin. Empty means "example.com/fake".
	Kind string

	// Supports reports whether the plugin supports a volume. If nil, it supports all.
	Supports func(*volume.Spec) bool

	// Fault is called at the beginning of each operation: "SetUp", "Refresh", "TearDown",
	// "Stage", "Unstage", "Expand" or "Stats". It may block; an error is returned by the
	// operation. The name is the name of the directory, or for Stage and Unstage of the
	// volume. If nil, all operations succeed.
	Fault func(ctx context.Context, act, name string) error

	// HalfWay is like Fault, but is called between the creation of the directory and that of
	// the file, or between their removals.
	HalfWay func(ctx context.Context, act, name string) error

	// Mounter, if not nil, mounts a tmpfs at the directory.
	Mounter volume.Mounter

	// Capabilities are the optional capabilities.
	Capabilities Capabilities

	// RefreshIn is the time from SetUp to the RefreshAt that it returns; zero means none.
	RefreshIn time.Duration

	// Made returns the objects that a volume is made from. It may be nil.
	Made func(*v1.Pod, *volume.Spec) []v1.ObjectReference

	// Shared returns the SharedName of a volume. If nil, volumes are not staged.
	Shared func(*volume.Spec) string

	// Unknown makes ConstructSpec fail.
	Unknown bool

	// mu guards the fields below.
	mu     sync.Mutex
	counts map[string]int
	last   map[string]volume.Request
}

// Capabilities are the capabilities of a [Plugin] that are enabled.
type Capabilities struct {
	Refresh        bool // volumes are refreshed
	Attach         bool // volumes must be attached
	NoMountOptions bool // mount options are not supported
	Block          bool // block volumes are supported
	SELinux        bool // volumes are mounted with an SELinux label
}

// Count returns the number of operations started with the name act.
func (p *Plugin) Count(act string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[act]
}

// Last returns the request of the last SetUp, Stage or Expand with this directory name.
func (p *Plugin) Last(name string) volume.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[name]
}

func (p *Plugin) begin(ctx context.Context, act, name string, req *volume.Request) error {
	p.mu.Lock()
	if p.counts == nil {
		p.counts, p.last = map[string]int{}, map[string]volume.Request{}
	}
	p.counts[act]++
	if req != nil {
		p.last[name] = *req
	}
	p.mu.Unlock()
	if p.Fault != nil {
		if err := p.Fault(ctx, act, name); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (p *Plugin) halfWay(ctx context.Context, act, name string) error {
	if p.HalfWay == nil {
		return nil
	}
	return p.HalfWay(ctx, act, name)
}

// Name implements volume.Plugin.
func (p *Plugin) Name() string {
	if p.Kind == "" {
		return "example.com/fake"
	}
	return p.Kind
}

// CanSupport implements volume.Plugin.
func (p *Plugin) CanSupport(spec *volume.Spec) bool {
	if p.Supports == nil {
		return spec.Name() != ""
	}
	return p.Supports(spec)
}

// SetUp implements volume.Plugin.
func (p *Plugin) SetUp(ctx context.Context, req volume.Request) (volume.SetUpResult, error) {
	act := "SetUp"
	if req.Refresh {
		act = "Refresh"
	}
	var made volume.SetUpResult
	if err := p.begin(ctx, act, req.Name, &req); err != nil {
		return made, err
	}
	dir := req.Dir()
	if req.Block {
		if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
			return made, err
		}
		if err := os.Symlink(os.DevNull, dir); err != nil && !errors.Is(err, os.ErrExist) {
			return made, err
		}
		return volume.SetUpResult{Volume: runtime.Volume{Device: dir}}, nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return made, err
	}
	if p.Mounter != nil {
		if is, err := p.Mounter.IsMountPoint(dir); err != nil {
			return made, err
		} else if !is {
			if err := p.Mounter.Mount("tmpfs", dir, "tmpfs", req.MountOptions); err != nil {
				return made, err
			}
		}
	}
	if err := p.halfWay(ctx, act, req.Name); err != nil {
		return made, err
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(req.Spec.Name()), 0o640); err != nil {
		return made, err
	}
	if err := req.SetOwnership(ctx, dir, false); err != nil {
		return made, err
	}
	made.Path, made.ReadOnly = dir, req.Spec.ReadOnly
	if p.RefreshIn > 0 {
		made.RefreshAt = time.Now().Add(p.RefreshIn)
	}
	return made, nil
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(ctx context.Context, at volume.Place) error {
	if err := p.begin(ctx, "TearDown", at.Name, nil); err != nil {
		return err
	}
	if at.Block {
		if err := os.Remove(at.Dir()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if p.Mounter == nil { // nothing is mounted; the file is removed first
		if err := os.Remove(filepath.Join(at.Dir(), "file")); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := p.halfWay(ctx, "TearDown", at.Name); err != nil {
			return err
		}
		return os.RemoveAll(at.Dir())
	}
	return volume.RemoveTree(ctx, p.Mounter, at.Dir())
}

// ConstructSpec implements volume.Plugin.
func (p *Plugin) ConstructSpec(at volume.Place) (*volume.Spec, error) {
	if p.Unknown {
		return nil, errors.New("volumetest: unknown volume")
	}
	return &volume.Spec{Volume: &v1.Volume{Name: at.Name}, Block: at.Block}, nil
}

// Stats implements volume.Plugin.
func (p *Plugin) Stats(ctx context.Context, at volume.Place, _ runtime.Volume) (statsapi.FsStats, error) {
	if err := p.begin(ctx, "Stats", at.Name, nil); err != nil {
		return statsapi.FsStats{}, err
	}
	stats, err := volume.DiskUsage(ctx, at.Dir())
	return stats, err
}

// Refreshes implements volume.Refresher.
func (p *Plugin) Refreshes(*volume.Spec) bool { return p.Capabilities.Refresh }

// Refs implements volume.ObjectReferrer.
func (p *Plugin) ObjectRefs(pod *v1.Pod, spec *volume.Spec) []v1.ObjectReference {
	if p.Made == nil {
		return nil
	}
	return p.Made(pod, spec)
}

// NeedsAttach implements volume.Attacher.
func (p *Plugin) NeedsAttach(context.Context, *volume.Spec) (bool, error) {
	return p.Capabilities.Attach, nil
}

// AttachLimitExceeded implements volume.Attacher.
func (p *Plugin) AttachLimitExceeded(context.Context, *volume.Spec) (bool, error) {
	return false, nil
}

// SharedName implements volume.Stager.
func (p *Plugin) SharedName(spec *volume.Spec) (string, error) {
	if p.Shared == nil {
		return "", nil
	}
	return p.Shared(spec), nil
}

// Stage implements volume.Stager.
func (p *Plugin) Stage(ctx context.Context, req volume.Request) error {
	return p.begin(ctx, "Stage", req.Spec.DirName(), &req)
}

// Unstage implements volume.Stager.
func (p *Plugin) Unstage(ctx context.Context, spec *volume.Spec) error {
	return p.begin(ctx, "Unstage", spec.DirName(), nil)
}

// Expand implements volume.Expander.
func (p *Plugin) Expand(ctx context.Context, req volume.Request, size resource.Quantity) (resource.Quantity, error) {
	return size, p.begin(ctx, "Expand", req.Name, &req)
}

// SupportsMountOptions implements volume.MountOptioner.
func (p *Plugin) SupportsMountOptions() bool { return !p.Capabilities.NoMountOptions }

// SupportsSELinuxMount implements volume.SELinuxMounter.
func (p *Plugin) SupportsSELinuxMount(context.Context, *volume.Spec) (bool, error) {
	return p.Capabilities.SELinux, nil
}

// SupportsBlock implements volume.BlockMapper.
func (p *Plugin) SupportsBlock() bool { return p.Capabilities.Block }
