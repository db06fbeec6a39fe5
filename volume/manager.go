package volume

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/runonce"
)

// A Manager mounts and unmounts the volumes of pods. Steps are taken only while [Manager.Run] runs.
// Safe for concurrent use.
type Manager struct {
	cfg   Config
	ran   runonce.Guard
	log   *slog.Logger
	stats *meter

	// reconstructed is closed when the volumes that an earlier agent mounted are known.
	reconstructed   chan struct{}
	reconstructOnce sync.Once

	signal chan struct{} // a volume or device is dirty
	steps  sync.WaitGroup

	// mu guards the fields below.
	mu      sync.Mutex
	world   world
	changed map[types.UID]chan struct{} // closed when a volume of the pod changes
	sweeps  map[types.UID]time.Time     // pods whose directory is being removed, and since when
	logged  map[types.UID]time.Time     // when the failure to remove a pod's directory was logged
	orphans map[types.UID]func() bool   // orphaned pods whose volumes are torn down, and the keep function of Collect
	later   []func()                    // calls to make after mu is unlocked
}

// New returns a Manager, or an error if cfg is invalid. It does not access any file.
func New(cfg Config) (*Manager, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg, log: cfg.Logger, reconstructed: make(chan struct{}), signal: make(chan struct{}, 1), world: newWorld(),
		changed: map[types.UID]chan struct{}{}, sweeps: map[types.UID]time.Time{}, logged: map[types.UID]time.Time{}, orphans: map[types.UID]func() bool{},
	}
	m.stats = newMeter(m)
	return m, nil
}

// Run reconstructs the volumes that an earlier agent mounted and reconciles the actual with the desired
// state until ctx is done. It then cancels the steps in progress and waits for them; a later Manager
// completes them. It returns nil, or an error that names the steps that have not returned within
// Config.StopTimeout. It does not wait longer than two seconds for a volume that is being measured. Run
// sleeps while the two states are equal. A second call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("volume: Manager"); err != nil {
		return err
	}
	m.reconstruct(ctx)
	var measuring sync.WaitGroup
	if m.cfg.StatsPeriod > 0 {
		measuring.Go(func() { m.stats.run(ctx) })
	}
	m.reconcile(ctx)
	return m.stop(func() {
		m.steps.Wait()
		measuring.Wait()
	})
}

// stop waits for wait to return, as long as Config.StopTimeout permits.
func (m *Manager) stop(wait func()) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wait()
	}()
	stopping := time.Now()
	for {
		var late <-chan time.Time
		m.mu.Lock()
		running := m.runningLocked()
		m.mu.Unlock()
		by := stopBy(running, stopping, m.cfg.StopTimeout)
		if !by.IsZero() {
			late = time.After(time.Until(by))
		}
		select {
		case <-ended:
			return nil
		case <-m.signal: // a step has ended
		case <-late:
			names := make([]string, len(running))
			for i, r := range running {
				names[i] = r.name
			}
			slices.Sort(names)
			if len(names) == 0 {
				names = []string{"a hook or a measurement"}
			}
			return fmt.Errorf("volume: not stopped within %v: %s", m.cfg.StopTimeout, strings.Join(names, ", "))
		}
	}
}

// A runningStep is a step in progress.
type runningStep struct {
	name  string
	since time.Time
}

// runningLocked returns the steps in progress.
func (m *Manager) runningLocked() []runningStep {
	var list []runningStep
	for _, v := range m.world.volumes {
		if v.step != noStep {
			list = append(list, runningStep{fmt.Sprintf("%s %s", v.step, v.place), v.stepAt})
		}
	}
	for _, d := range m.world.devices {
		if d.step != noStep {
			list = append(list, runningStep{fmt.Sprintf("%s %s", d.step, d.name), d.stepAt})
		}
	}
	for uid, since := range m.sweeps {
		list = append(list, runningStep{fmt.Sprintf("remove the directory of pod %s", uid), since})
	}
	return list
}

// stopBy returns the time until which Run waits for steps that were canceled at the time stopping; zero
// means without end. A step that has run for timeout before is not expected to return.
func stopBy(running []runningStep, stopping time.Time, timeout time.Duration) time.Time {
	if timeout < 0 {
		return time.Time{}
	}
	by := stopping.Add(min(stopGrace, timeout))
	for _, r := range running {
		if at := r.since.Add(timeout); at.After(by) {
			by = at
		}
	}
	return by
}

// reconcile starts the steps of dirty and due volumes until ctx is done.
func (m *Manager) reconcile(ctx context.Context) {
	alarm := time.NewTimer(time.Hour)
	alarm.Stop()
	defer alarm.Stop()
	for ctx.Err() == nil {
		at := m.takeSteps(ctx, time.Now())
		if m.cfg.Hooks.Reconciled != nil {
			m.cfg.Hooks.Reconciled()
		}
		var due <-chan time.Time
		if !at.IsZero() {
			alarm.Reset(time.Until(at))
			due = alarm.C
		}
		select {
		case <-ctx.Done():
		case <-m.signal:
		case <-due:
		}
	}
}

// takeSteps starts the next step of each dirty or due volume and device, and returns the time at which
// the next one is due.
func (m *Manager) takeSteps(ctx context.Context, now time.Time) time.Time {
	m.mu.Lock()
	defer m.unlock()
	w := &m.world
	for {
		at := w.due(now)
		if len(w.dirty) == 0 && len(w.dirtyDevices) == 0 {
			return at
		}
		for place, v := range w.dirty {
			delete(w.dirty, place)
			s, at := next(v.stepInput(m.attachedLocked(v)), now)
			w.wake(v, at)
			m.takeLocked(ctx, v, s, now)
		}
		for name, d := range w.dirtyDevices {
			delete(w.dirtyDevices, name)
			s, at := nextDevice(d.stepInput(), now)
			w.wakeDevice(d, at)
			m.takeDeviceLocked(ctx, d, s)
		}
	}
}

// markLocked marks the volume as dirty.
func (m *Manager) markLocked(v *podVolume) {
	m.world.dirty[v.place] = v
	m.wakeUp()
}

// markDeviceLocked marks a device and the volumes on it as dirty.
func (m *Manager) markDeviceLocked(d *device) {
	m.world.dirtyDevices[d.name] = d
	for _, v := range d.users {
		m.world.dirty[v.place] = v
		m.notifyLocked(v.place.PodUID)
	}
	m.wakeUp()
}

func (m *Manager) wakeUp() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// watchLocked returns a channel that is closed when a volume of the pod changes.
func (m *Manager) watchLocked(uid types.UID) <-chan struct{} {
	c := m.changed[uid]
	if c == nil {
		c = make(chan struct{})
		m.changed[uid] = c
	}
	return c
}

// notifyLocked wakes the callers that wait for a change of a volume of the pod.
func (m *Manager) notifyLocked(uid types.UID) {
	if c := m.changed[uid]; c != nil {
		close(c)
		delete(m.changed, uid)
	}
}

// attachedLocked reports whether the volume is attached and reported as in use, or need not be.
func (m *Manager) attachedLocked(v *podVolume) bool {
	if !v.attach || m.cfg.PersistentVolumes.Node == nil {
		return true
	}
	_, ok := m.cfg.PersistentVolumes.Node.Attached(v.uniqueName())
	return ok && m.cfg.PersistentVolumes.Node.InUse(v.uniqueName())
}

// uniqueName returns the name of the volume on this node.
func (v *podVolume) uniqueName() v1.UniqueVolumeName {
	if v.device != nil {
		return v1.UniqueVolumeName(v.device.name)
	}
	return v1.UniqueVolumeName(uniqueName(v.place, "", v.name()))
}

// AttachChanged must be called when the result of Attached or InUseReported may have changed, that is,
// when the status of the node has changed. It does not block. Safe for concurrent use.
func (m *Manager) AttachChanged() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.world.volumes {
		if v.attach && v.state != inPlace {
			m.markLocked(v)
		}
	}
}

// ObjectChanged must be called when an object has been created, changed or deleted. Volumes that are
// made from it are refreshed, and volumes that wait for it are retried immediately. The kind is one
// that an [ObjectReferrer] uses, such as Secret. It does not block. Safe for concurrent use.
func (m *Manager) ObjectChanged(kind, namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ref := range []v1.ObjectReference{
		{Kind: kind, Namespace: namespace, Name: name}, {Kind: kind, Namespace: namespace}, {Kind: kind, Name: name}, {Kind: kind},
	} {
		for _, v := range m.world.refs[ref] {
			v.failed.notBefore = time.Time{}
			if v.refreshes && (v.state == inPlace || v.step == setUp) {
				v.refresh = true // a step in progress may have read the old object
			}
			m.markLocked(v)
		}
	}
}

// refreshes reports whether volumes of the plugin with this spec may change while they are mounted.
func refreshes(p Plugin, spec *Spec) bool {
	r, ok := compose.As[Refresher](p)
	return ok && spec != nil && r.Refreshes(spec)
}

// PluginChanged must be called when a condition that a plugin waits for may be met, such as the
// registration of a driver. The plugin's volumes are retried immediately. It does not block. Safe for
// concurrent use.
func (m *Manager) PluginChanged(plugin string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.world.volumes {
		if v.place.Plugin == plugin {
			v.failed.notBefore = time.Time{}
			if v.device != nil {
				v.device.failed.notBefore = time.Time{}
				m.world.dirtyDevices[v.device.name] = v.device
			}
			m.markLocked(v)
		}
	}
}

// VolumesInUse returns the attachable volumes that must not be detached, sorted, for
// node.status.volumesInUse. It contains a volume from the time at which a pod desires it until its
// device is unstaged. Safe for concurrent use.
func (m *Manager) VolumesInUse() []v1.UniqueVolumeName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []v1.UniqueVolumeName
	for _, v := range m.world.volumes {
		if v.attach {
			names = append(names, v.uniqueName())
		}
	}
	for _, d := range m.world.devices {
		if d.state != notMounted || d.step != noStep {
			names = append(names, v1.UniqueVolumeName(d.name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
