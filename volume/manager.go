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

	"github.com/kubeparts/kubeparts/internal/runonce"
)

// A Manager gets the volumes of pods ready and away. It is made by [New], and
// works while [Manager.Run] runs. All methods may be called from any goroutine.
type Manager struct {
	cfg   Config
	ran   runonce.Guard
	log   *slog.Logger
	stats *meter

	// found is closed when what an earlier agent has left is known.
	found   chan struct{}
	finding sync.Once

	signal chan struct{} // something is to be looked at
	steps  sync.WaitGroup

	// mu guards the fields below.
	mu      sync.Mutex
	world   world
	changed map[types.UID]chan struct{} // closed when a volume of the pod changes
	sweeps  map[types.UID]bool          // pods whose directory is being removed
	told    map[types.UID]time.Time     // pods whose directory was complained of
	orphans map[types.UID]func() bool   // pods being removed that nobody wants, and whether somebody does by now
	later   []func()                    // to be called when mu is free
}

// New returns a Manager for cfg, or an error if it lacks something. It touches no
// file.
func New(cfg Config) (*Manager, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg, log: cfg.Logger, found: make(chan struct{}), signal: make(chan struct{}, 1), world: newWorld(),
		changed: map[types.UID]chan struct{}{}, sweeps: map[types.UID]bool{}, told: map[types.UID]time.Time{}, orphans: map[types.UID]func() bool{},
	}
	m.stats = newMeter(m)
	return m, nil
}

// Run reads what an earlier agent has left, and then takes the steps that
// volumes need, until ctx ends; the steps that are being taken are called off and
// waited for, and a later Manager finishes them. While everything is as wanted it
// sleeps (F-42). It returns nil, or, after Config.StopTimeout, an error that names
// the steps which hang. A second call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("volume: Manager"); err != nil {
		return err
	}
	m.Reconstruct()
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

// stop waits until all has ended, or has had its time.
func (m *Manager) stop(wait func()) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wait()
	}()
	var late <-chan time.Time
	if m.cfg.StopTimeout > 0 {
		alarm := time.NewTimer(m.cfg.StopTimeout)
		defer alarm.Stop()
		late = alarm.C
	}
	select {
	case <-ended:
		return nil
	case <-late:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var hang []string
	for _, v := range m.world.volumes {
		if v.step != nothing {
			hang = append(hang, fmt.Sprintf("%s %s", v.step, v.place))
		}
	}
	for _, d := range m.world.devices {
		if d.step != nothing {
			hang = append(hang, fmt.Sprintf("%s %s", d.step, d.name))
		}
	}
	if len(hang) == 0 {
		hang = []string{"measuring"}
	}
	slices.Sort(hang)
	return fmt.Errorf("volume: not stopped within %v: %s", m.cfg.StopTimeout, strings.Join(hang, ", "))
}

// reconcile looks at what has changed, and at what is due, and begins the steps
// that follow from it.
func (m *Manager) reconcile(ctx context.Context) {
	alarm := time.NewTimer(time.Hour)
	alarm.Stop()
	defer alarm.Stop()
	for ctx.Err() == nil {
		at := m.look(ctx, time.Now())
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

// look takes the next step of all that is marked or due, and returns when the
// next one is due.
func (m *Manager) look(ctx context.Context, now time.Time) time.Time {
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
			s, at := next(v.look(m.attachedLocked(v)), now)
			w.wake(v, at)
			m.takeLocked(ctx, v, s, now)
		}
		for name, d := range w.dirtyDevices {
			delete(w.dirtyDevices, name)
			s, at := nextDevice(d.look(), now)
			w.wakeDevice(d, at)
			m.takeDeviceLocked(ctx, d, s)
		}
	}
}

// markLocked has the volume looked at.
func (m *Manager) markLocked(v *podVolume) {
	m.world.dirty[v.place] = v
	m.wakeUp()
}

// markDeviceLocked has a device looked at, and the volumes on it.
func (m *Manager) markDeviceLocked(d *device) {
	m.world.dirtyDevices[d.name] = d
	for _, v := range d.users {
		m.world.dirty[v.place] = v
		m.tellLocked(v.place.PodUID)
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

// tellLocked tells who waits for volumes of the pod that one has changed.
func (m *Manager) tellLocked(uid types.UID) {
	if c := m.changed[uid]; c != nil {
		close(c)
		delete(m.changed, uid)
	}
}

// attachedLocked reports whether the volume is attached, if it has to be.
func (m *Manager) attachedLocked(v *podVolume) bool {
	if !v.attach || m.cfg.Attached == nil {
		return true
	}
	_, ok := m.cfg.Attached(v.uniqueName())
	return ok && (m.cfg.Reported == nil || m.cfg.Reported(v.uniqueName())) // vol-17
}

// uniqueName is what the volume is called on this node (vol-2).
func (v *podVolume) uniqueName() v1.UniqueVolumeName {
	if v.device != nil {
		return v1.UniqueVolumeName(v.device.name)
	}
	return v1.UniqueVolumeName(UniqueName(v.place, "", v.name()))
}

// AttachChanged says that Config.Attached or Config.Reported may answer
// differently: the status of the node has changed. It doesn't block.
func (m *Manager) AttachChanged() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.world.volumes {
		if v.attach && v.state != InPlace {
			m.markLocked(v)
		}
	}
}

// ObjectChanged says that an object has changed, or has come, or has gone: the
// volumes that are made from it are brought up to date now, and those that wait
// for it are tried again (F-43). Kind is "ConfigMap", "Secret" and so on. It
// doesn't block.
func (m *Manager) ObjectChanged(kind, namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ref := range []ObjectRef{{kind, namespace, name}, {kind, namespace, ""}, {kind, "", name}, {kind, "", ""}} {
		for _, v := range m.world.refs[ref] {
			v.failed.notBefore = time.Time{}
			if v.refreshes() && (v.state == InPlace || v.step == setUp) {
				v.refresh = true // a step that is being taken may have read it before
			}
			m.markLocked(v)
		}
	}
}

// refreshes reports whether the volume changes while it is mounted (vol-11).
func (v *podVolume) refreshes() bool {
	r, ok := v.plugin.(Refresher)
	return ok && v.spec != nil && r.Refreshes(v.spec)
}

// PluginChanged says that what a plugin waited for may be there: a driver has
// registered itself. Its volumes are tried again now. It doesn't block.
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

// InUse returns the attached volumes that must not be detached: what
// node.status.volumesInUse should say, sorted. A volume is in it from when a pod
// wants it until its device has been unstaged (vol-17, vol-25).
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
		if d.state != NotMounted || d.step != nothing {
			names = append(names, v1.UniqueVolumeName(d.name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
