package volume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/runtime"
)

// Config configures a [Manager].
type Config struct {
	// Root is the agent's directory, absolute, whose layout below is the
	// kubelet's: /var/lib/kubelet. Required.
	RootDir string

	// Plugins know the kinds of volumes; a volume is the business of the only
	// one that can support it. Required: without one there is nothing to do.
	Plugins []Plugin

	// Mounter unmounts what is left over, and binds sub-paths. Required; where
	// nothing can be mounted, one that says so.
	Mounter Mounter

	// Claims get persistent volume claims. Nil: a pod that has one waits.
	Claims Claims

	// Translate turns the spec of a volume that is built into Kubernetes into
	// that of the CSI driver which has replaced it (vol-9). Nil: such volumes
	// have no plugin, unless one of Plugins is theirs.
	Translate func(spec *Spec) (*Spec, error)

	// Node returns this node, for persistent volumes that are to be had on
	// some only (vol-20). Nil: they are not looked at.
	Node func() *v1.Node

	// Attached reports whether a volume that has to be attached is, and by
	// which device: what node.status.volumesAttached says (vol-17). Name is as
	// in [Manager.InUse]. It is asked again after [Manager.AttachChanged], and
	// must not block. Nil: nobody attaches, and nothing is waited for.
	Attached func(name v1.UniqueVolumeName) (devicePath string, ok bool)

	// Reported tells whether node.status.volumesInUse, as the API server has
	// it, names the volume: only then is it safe from being detached (vol-17).
	// It is asked again after [Manager.AttachChanged], and must not block. Nil:
	// what is attached is used at once.
	Reported func(name v1.UniqueVolumeName) bool

	// SELinuxLabel returns the label of the files of a container with these
	// options: [HostSELinuxLabel] returns such a func. It must not block. Nil:
	// SELinux is off, and no volume is labelled, neither by its mount nor by
	// the runtime (vol-13).
	SELinuxLabel func(options *v1.SELinuxOptions) (string, error)

	// Expanded hears that the file system of a claim has grown, so that its
	// status may say so. It may block. Nil: nobody does.
	Expanded func(ctx context.Context, claim *v1.PersistentVolumeClaim, size resource.Quantity) error

	// WaitTimeout is how long Mount and Unmount wait. Zero: 2 m 3 s, the
	// kubelet's. What they wait for goes on afterwards.
	WaitTimeout time.Duration

	// AttachTimeout is how long a volume may take to be attached before its
	// pod is told. Zero: 10 minutes.
	AttachTimeout time.Duration

	// StopTimeout is how long Run waits, when its context has ended, for steps
	// that don't return: a mount that hangs in the kernel can't be called off.
	// Zero: 30 s; negative: as long as it takes. What such a step leaves is as
	// uncertain as after a crash, and a later Manager's; one in this same
	// process could meet the step.
	StopTimeout time.Duration

	// StatsPeriod is how often volumes are measured, each pod at its own time.
	// Zero: 1 minute; negative: never (vol-76). A short one reads the disk all
	// the time.
	StatsPeriod time.Duration

	// Record takes the events that kubectl describe shows. It must not block.
	// Nil: nobody reads them.
	Record func(runtime.Event)

	// Compat brings back ways of the kubelet's; see there.
	Compat Compat

	// Logger, nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks Hooks
}

// Compat has the ways of the kubelet's that a user can see and this package does
// not share by default.
type Compat struct {
	// KeepLeftovers leaves the directory of an orphaned pod for ever if one of
	// its volumes is not empty, also where the files can be nobody's but the
	// pod's (nq-11).
	KeepLeftovers bool
}

// check fills in the defaults.
func (c *Config) check() error {
	switch {
	case c.RootDir == "" || !filepath.IsAbs(c.RootDir):
		return fmt.Errorf("volume: Config.RootDir %q is not an absolute path", c.RootDir)
	case len(c.Plugins) == 0:
		return errors.New("volume: Config.Plugins is empty")
	case c.Mounter == nil:
		return errors.New("volume: Config.Mounter is nil")
	case c.WaitTimeout < 0:
		return fmt.Errorf("volume: Config.WaitTimeout is negative: %v", c.WaitTimeout)
	case c.AttachTimeout < 0:
		return fmt.Errorf("volume: Config.AttachTimeout is negative: %v", c.AttachTimeout)
	}
	names := map[string]bool{}
	for i, p := range c.Plugins {
		if p == nil {
			return fmt.Errorf("volume: Config.Plugins[%d] is nil", i)
		}
		if err := checkName(Escape(p.Name())); err != nil {
			return fmt.Errorf("volume: the name of plugin %q %w", p.Name(), err)
		}
		if names[p.Name()] {
			return fmt.Errorf("volume: two plugins are called %q", p.Name())
		}
		names[p.Name()] = true
	}
	c.RootDir = filepath.Clean(c.RootDir)
	if c.WaitTimeout == 0 {
		c.WaitTimeout = 2*time.Minute + 3*time.Second
	}
	if c.AttachTimeout == 0 {
		c.AttachTimeout = 10 * time.Minute
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 30 * time.Second
	}
	if c.StatsPeriod == 0 {
		c.StatsPeriod = time.Minute
	}
	if c.Record == nil {
		c.Record = func(runtime.Event) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// plugin returns the plugin of that name, or nil.
func (c *Config) plugin(name string) Plugin {
	for _, p := range c.Plugins {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// pluginFor returns the plugin that can support spec.
func (c *Config) pluginFor(spec *Spec) (Plugin, error) {
	var found Plugin
	for _, p := range c.Plugins {
		if !p.CanSupport(spec) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("multiple volume plugins matched: %s,%s", found.Name(), p.Name())
		}
		found = p
	}
	if found == nil {
		err := errors.New("no volume plugin matched")
		if kind := spec.kind(); kind != "" {
			err = fmt.Errorf("%w: volumes of kind %s are not supported by this agent", err, kind)
		}
		return nil, err
	}
	return found, nil
}
