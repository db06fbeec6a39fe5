package volume

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// Config configures a [Manager].
type Config struct {
	// RootDir is the agent's directory, an absolute path. Its layout is the kubelet's
	// below /var/lib/kubelet. Required.
	RootDir string

	// Plugins support the kinds of volumes. Exactly one plugin must support a volume;
	// otherwise the volume is not set up. At least one is required.
	Plugins []Plugin

	// Mounter unmounts leftover mounts and bind-mounts sub-paths. Required; see
	// [NewMounter] for a process that may not mount.
	Mounter Mounter

	// PersistentVolumes connects the Manager to the cluster. The zero value is for a
	// node without persistent volumes: pods that refer to a claim are not started.
	PersistentVolumes PersistentVolumeConfig

	// SELinuxLabel returns the SELinux label of the files of a container with these
	// options; see [HostSELinuxLabel]. It must not block. If nil, SELinux is off: no
	// volume is labeled, neither by its mount nor by the runtime.
	SELinuxLabel func(options *v1.SELinuxOptions) (string, error)

	// WaitTimeout bounds a call of Mount or Unmount. The steps that the call waits for
	// continue afterwards. Zero means 2m3s, as in the kubelet.
	WaitTimeout time.Duration

	// StopTimeout bounds how long Run waits after its context is done for steps that do
	// not return; a mount that hangs in the kernel cannot be canceled. The time in which
	// a step has run before counts: one that has hung for as long is waited for two
	// seconds only. Zero means 30s; a negative value means no limit. The result of such a step is unknown, as after a
	// crash; a Manager constructed later in the same process may run concurrently with it.
	StopTimeout time.Duration

	// StatsPeriod is the period at which the volumes of each pod are measured. Zero
	// means 1 minute; a negative value disables it. Measuring reads every inode of a
	// volume on disk.
	StatsPeriod time.Duration

	// HealthChanged is called after [Manager.VolumeHealth] of the pod has changed. It must not
	// block. If nil, the health of volumes is not read. It is read when a pod is measured, so a
	// negative StatsPeriod disables it.
	HealthChanged func(uid types.UID)

	// Record records events of pods. It must not block. If nil, events are discarded.
	Record func(runtime.Event)

	// If Logger is nil, log records are discarded.
	Logger *slog.Logger

	// Hooks observe the Manager.
	Hooks Hooks
}

// A PersistentVolumeConfig connects a [Manager] to the objects of a cluster that persistent
// volumes depend on. Each field is optional.
type PersistentVolumeConfig struct {
	// SELinuxOnePodOnly restricts mounts with an SELinux label to volumes whose only access
	// mode is ReadWriteOncePod, as in Kubernetes before 1.37. If false, pods with different
	// labels cannot use a persistent volume at the same time, unless their
	// seLinuxChangePolicy is Recursive or the volume cannot be mounted with a label.
	SELinuxOnePodOnly bool

	// Claims returns claims and persistent volumes. If nil, a pod that refers to a claim is
	// not started.
	Claims Claims

	// Node is the node in the cluster. If nil, node affinity of persistent volumes is not
	// checked, and volumes are mounted without being attached.
	Node Node

	// Translate converts the spec of a volume of a plugin that a CSI driver replaces, of a
	// pod in the namespace, to that of the driver; it returns other specs unchanged.
	// kube/csimigration implements it. It may be called concurrently. If nil, such a volume
	// requires a plugin of its own.
	Translate func(spec *Spec, namespace string) (*Spec, error)

	// AttachTimeout is the duration after which an event is recorded for a volume that
	// is not attached. Zero means 10 minutes.
	AttachTimeout time.Duration
}

// A Node is the node in the cluster. The methods may be called concurrently and must not block.
type Node interface {
	// Object returns the node, which must match the node affinity of a persistent volume.
	// If nil, node affinity is not checked.
	Object() *v1.Node

	// Attached reports whether an attachable volume is attached and returns its device
	// path, from node.status.volumesAttached. The name is as in [Manager.VolumesInUse].
	// It is called again after [Manager.AttachChanged].
	Attached(name v1.UniqueVolumeName) (devicePath string, ok bool)

	// InUse reports whether node.status.volumesInUse contains the volume in the API server.
	// Before that, the attach/detach controller may detach the volume, and it is not
	// mounted. It is called again after [Manager.AttachChanged].
	InUse(name v1.UniqueVolumeName) bool
}

// check validates the configuration and sets defaults.
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
	case c.PersistentVolumes.AttachTimeout < 0:
		return fmt.Errorf("volume: Config.PersistentVolumes.AttachTimeout is negative: %v", c.PersistentVolumes.AttachTimeout)
	}
	names := map[string]bool{}
	for i, p := range c.Plugins {
		if p == nil {
			return fmt.Errorf("volume: Config.Plugins[%d] is nil", i)
		}
		if err := checkName(escape(p.Name())); err != nil {
			return fmt.Errorf("volume: plugin name %q: %w", p.Name(), err)
		}
		if names[p.Name()] {
			return fmt.Errorf("volume: duplicate plugin name %q", p.Name())
		}
		names[p.Name()] = true
		if err := compose.Check(p, optional()...); err != nil {
			return fmt.Errorf("volume: Config.Plugins[%d]: %w", i, err)
		}
	}
	c.RootDir = filepath.Clean(c.RootDir)
	if c.WaitTimeout == 0 {
		c.WaitTimeout = 2*time.Minute + 3*time.Second
	}
	if c.PersistentVolumes.AttachTimeout == 0 {
		c.PersistentVolumes.AttachTimeout = 10 * time.Minute
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

// plugin returns the plugin with the name, or nil.
func (c *Config) plugin(name string) Plugin {
	for _, p := range c.Plugins {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// pluginFor returns the only plugin that supports spec.
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
		switch kind := spec.kind(); {
		case kind != "" && spec.PV != nil:
			err = fmt.Errorf("%w: persistent volume %q is of kind %s, which is not supported by this agent", err, spec.PV.Name, kind)
		case kind != "":
			err = fmt.Errorf("%w: volumes of kind %s are not supported by this agent", err, kind)
		}
		return nil, err
	}
	return found, nil
}
