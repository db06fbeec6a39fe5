package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// Mount adds the volumes that containers of the pod use to the desired state and blocks until all of
// them are mounted. It returns them by their names in the pod, without images, which the runtime
// mounts. It must be called at each sync of the pod: it also starts a refresh of volumes whose content
// may change, for which it does not wait.
//
// It returns a [*PodError] after Config.WaitTimeout at the latest. The steps continue, and a later
// call returns their result. The error wraps a [*runtime.Rejection] if a volume cannot be attached
// because of the limit of an [Attacher]; reading that takes 10 more seconds at most. Must not be
// called concurrently for the same pod.
func (m *Manager) Mount(ctx context.Context, pod *v1.Pod) (map[string]runtime.Volume, error) {
	list := uses(pod)
	if len(list) == 0 {
		return nil, nil
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, m.cfg.WaitTimeout)
	defer cancel()
	if err := m.awaitReady(ctx, pod.UID); err != nil {
		return nil, fmt.Errorf("volume: %w", err)
	}
	var bad []*Error
	var volumes []desiredVolume
	for _, u := range list {
		w, err := m.resolveVolume(ctx, pod, u)
		if err != nil {
			bad = append(bad, &Error{Volume: u.volume.Name, Phase: notProcessed, Err: err})
			continue
		}
		volumes = append(volumes, w)
	}
	if err := m.awaitReady(ctx, pod.UID); err != nil { // resolveVolume may have taken long
		return nil, fmt.Errorf("volume: %w", err)
	}
	m.setDesired(pod, volumes)
	ready, err := m.awaitMounted(ctx, pod, volumes, bad)
	if late, ok := errors.AsType[*PodError](err); ok && late.Err != nil && caller.Err() == nil {
		m.checkAttachLimits(caller, pod, volumes, late.Volumes)
	}
	return ready, err
}

// awaitReady blocks until the volumes of earlier agents are reconstructed and no removal of the
// directory of a pod with this UID is in progress.
func (m *Manager) awaitReady(ctx context.Context, uid types.UID) error {
	select {
	case <-m.reconstructed:
	case <-ctx.Done():
		return fmt.Errorf("waiting for Manager.Run: %w", ctx.Err())
	}
	for {
		m.mu.Lock()
		if _, removing := m.sweeps[uid]; !removing {
			m.mu.Unlock()
			return nil
		}
		changed := m.watchLocked(uid)
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the removal of the directory of an earlier pod: %w", ctx.Err())
		}
	}
}

// A desiredVolume is a resolved volume of a pod.
type desiredVolume struct {
	name     string // in the pod
	readOnly bool
	place    Place
	plugin   Plugin
	spec     *Spec
	shared   string // unique name of its device; "": it is not staged
	attach   bool
	refs     []v1.ObjectReference

	refreshes    bool // it may change while it is mounted
	mountOptions bool // the plugin applies mount options
	seLinuxMount bool // the plugin mounts it with a label
}

// resolveVolume resolves the claim, the plugin and the properties of a volume of the pod.
func (m *Manager) resolveVolume(ctx context.Context, pod *v1.Pod, u use) (desiredVolume, error) {
	spec, err := resolve(ctx, m.cfg.PersistentVolumes.Claims, pod, u)
	if err != nil {
		if spec = m.cachedSpec(pod.UID, u.volume.Name, err); spec == nil {
			return desiredVolume{}, err
		}
		m.log.Debug("Failed to read the claim of a volume, using the cached spec", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID, "volumeName", u.volume.Name, "err", err)
	}
	if m.cfg.PersistentVolumes.Translate != nil {
		if spec, err = m.cfg.PersistentVolumes.Translate(spec, pod.Namespace); err != nil {
			return desiredVolume{}, err
		}
	}
	w := desiredVolume{name: u.volume.Name, readOnly: spec.ReadOnly, spec: spec}
	if w.plugin, err = m.cfg.pluginFor(spec); err != nil {
		return desiredVolume{}, fmt.Errorf("volume %q: %w", u.volume.Name, err)
	}
	w.place = Place{RootDir: m.cfg.RootDir, PodUID: pod.UID, Plugin: w.plugin.Name(), Name: spec.DirName(), Block: spec.Block}
	if err := w.place.check(); err != nil {
		return desiredVolume{}, err
	}
	if blocks, ok := compose.As[BlockMapper](w.plugin); spec.Block && (!ok || !blocks.SupportsBlock()) {
		return desiredVolume{}, fmt.Errorf("volume %q: plugin %s does not support block volumes", u.volume.Name, w.plugin.Name())
	}
	if s, ok := compose.As[Stager](w.plugin); ok {
		shared, err := s.SharedName(spec)
		if err != nil {
			return desiredVolume{}, fmt.Errorf("volume %q: %w", u.volume.Name, err)
		}
		if shared != "" {
			w.shared = uniqueName(w.place, shared, "")
		}
	}
	if a, ok := compose.As[Attacher](w.plugin); ok && m.cfg.PersistentVolumes.Node != nil {
		if w.attach, err = a.NeedsAttach(ctx, spec); err != nil {
			return desiredVolume{}, fmt.Errorf("volume %q: %w", u.volume.Name, err)
		}
	}
	if s, ok := compose.As[SELinuxMounter](w.plugin); ok && m.cfg.SELinuxLabel != nil && spec.PV != nil && (!m.cfg.PersistentVolumes.SELinuxOnePodOnly || spec.hasAccessMode(v1.ReadWriteOncePod)) {
		if w.seLinuxMount, err = s.SupportsSELinuxMount(ctx, spec); err != nil {
			return desiredVolume{}, fmt.Errorf("volume %q: %w", u.volume.Name, err)
		}
	}
	if r, ok := compose.As[ObjectReferrer](w.plugin); ok {
		w.refs = r.ObjectRefs(pod, spec)
	}
	if o, ok := compose.As[MountOptioner](w.plugin); ok {
		w.mountOptions = o.SupportsMountOptions()
	}
	w.refreshes = refreshes(w.plugin, spec)
	return w, nil
}

// cachedSpec returns the spec of a volume to use in spite of err: the volume is mounted, or the claim
// could not be read and an earlier agent mounted the volume. Otherwise it returns nil.
func (m *Manager) cachedSpec(uid types.UID, name string, err error) *Spec {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.world.named(uid, name)
	_, unread := errors.AsType[errNotFetched](err)
	if v == nil || v.spec == nil || v.state != inPlace && !unread {
		return nil
	}
	return v.spec
}

// setDesired adds the volumes to the desired state.
func (m *Manager) setDesired(pod *v1.Pod, volumes []desiredVolume) {
	m.mu.Lock()
	defer m.mu.Unlock()
	writable := map[Place]bool{} // a pod may refer to one claim by two names
	for _, of := range volumes {
		writable[of.place] = writable[of.place] || !of.readOnly
	}
	for _, of := range volumes {
		v := m.world.add(of.place)
		if of.spec.ReadOnly && writable[of.place] {
			spec := *of.spec
			spec.ReadOnly = false
			of.spec = &spec
		}
		if !v.desired {
			v.since = time.Now()
			v.attachBy = v.since.Add(m.cfg.PersistentVolumes.AttachTimeout)
			v.failed = failure{} // a failed tear down
		}
		v.plugin, v.spec, v.pod, v.unclaimed, v.desired = of.plugin, of.spec, pod, false, true
		v.names[of.name] = of.readOnly
		v.attach, v.refreshes, v.mountOptions = of.attach, of.refreshes, of.mountOptions
		m.world.setRefs(v, of.refs)
		delete(m.orphans, pod.UID)
		if of.shared != "" {
			d := m.world.addDevice(of.shared, of.plugin, of.spec)
			if d.state == notMounted && d.step == noStep || d.stagedAs(of.spec) {
				d.plugin, d.spec = of.plugin, of.spec
			}
			m.world.setDevice(v, d)
		}
		if v.seLabel, v.failedSELab = m.cfg.seLinuxUse(pod, of, v.names).label(m.cfg.SELinuxLabel); v.failedSELab != nil {
			v.failedSELab = fmt.Errorf("volume %q: %w", of.name, v.failedSELab)
		}
		if v.state == inPlace && v.refreshes {
			v.refresh = true
		}
		m.markLocked(v)
	}
	m.stats.add(pod.UID)
}

// awaitMounted blocks until the volumes of the pod are mounted.
func (m *Manager) awaitMounted(ctx context.Context, pod *v1.Pod, volumes []desiredVolume, bad []*Error) (map[string]runtime.Volume, error) {
	for {
		m.mu.Lock()
		waiting := m.waitingLocked(volumes)
		var changed <-chan struct{}
		if len(bad) == 0 && len(waiting) > 0 {
			changed = m.watchLocked(pod.UID)
		}
		ready := m.readyLocked(volumes)
		m.mu.Unlock()
		switch {
		case len(bad) > 0: // waiting cannot help (rule vol-28)
			return nil, &PodError{Op: opMount, Volumes: sorted(append(waiting, bad...))}
		case len(waiting) == 0:
			return ready, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			m.mu.Lock()
			waiting, ready := m.waitingLocked(volumes), m.readyLocked(volumes)
			m.mu.Unlock()
			if len(waiting) == 0 {
				return ready, nil
			}
			return nil, &PodError{Op: opMount, Volumes: sorted(waiting), Err: ctx.Err()}
		}
	}
}

// readyLocked returns the mounted volumes.
func (m *Manager) readyLocked(volumes []desiredVolume) map[string]runtime.Volume {
	ready := make(map[string]runtime.Volume, len(volumes))
	for _, of := range volumes {
		if v := m.world.volumes[of.place]; v != nil && v.ready.Volume != (runtime.Volume{}) {
			at := v.ready.Volume
			at.ReadOnly = at.ReadOnly || of.readOnly
			ready[of.name] = at
		}
	}
	return ready
}

// waitingLocked returns an error for each volume that is not mounted.
func (m *Manager) waitingLocked(volumes []desiredVolume) []*Error {
	var waiting []*Error
	for _, of := range volumes {
		v := m.world.volumes[of.place]
		switch {
		case v == nil || !v.desired:
			waiting = append(waiting, &Error{Volume: of.name, Phase: notProcessed, Err: errors.New("the pod is being removed")})
		case v.state != inPlace || v.step == tearDown:
			n := v.notReady(m.attachedLocked(v))
			n.Volume = of.name
			waiting = append(waiting, n)
		}
	}
	return waiting
}

// notReady returns the reason why the volume is not mounted, or not unmounted.
func (v *podVolume) notReady(attached bool) *Error {
	n := &Error{Volume: v.place.Name, Phase: settingUp, Err: v.failed.err}
	for name := range v.names {
		n.Volume = name
	}
	failed := v.failed
	if v.device != nil && v.device.failed.err != nil && v.failed.err == nil {
		failed = v.device.failed
		n.Err = failed.err
	}
	switch {
	case !v.desired:
		n.Phase = tearingDown
	case v.attach && !attached:
		n.Phase = waitingAttach
	case v.device != nil && v.device.state != inPlace:
		n.Phase = waitingDevice
	}
	if v.step == noStep && failed.notBefore.After(time.Now()) && n.Phase != waitingAttach {
		n.Phase, n.RetryAt = backingOff, failed.notBefore
	}
	return n
}

// Unmount removes the volumes of the pod from the desired state and blocks until all of them are
// unmounted and their directories removed. No container of the pod may be running. Only the UID of pod
// is used: volumes that are not in its spec, which an earlier agent mounted, are unmounted too.
//
// It returns an [*PodError] after Config.WaitTimeout at the latest. The steps continue. Must not be
// called concurrently for the same pod.
func (m *Manager) Unmount(ctx context.Context, pod *v1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.WaitTimeout)
	defer cancel()
	if err := m.awaitReady(ctx, pod.UID); err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	m.mu.Lock()
	m.stats.drop(pod.UID)
	had := m.releaseLocked(pod.UID)
	m.mu.Unlock()
	for {
		m.mu.Lock()
		var left []*Error
		for _, v := range m.world.of(pod.UID) {
			left = append(left, v.notReady(true))
		}
		var changed <-chan struct{}
		if len(left) > 0 {
			changed = m.watchLocked(pod.UID)
		}
		m.mu.Unlock()
		if len(left) == 0 {
			if had {
				m.removeEmptyDirs(ctx, pod.UID)
			}
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return &PodError{Op: opUnmount, Volumes: sorted(left), Err: ctx.Err()}
		}
	}
}

// releaseLocked removes the volumes of the pod from the desired state and cancels the steps that set
// them up. It reports whether there are any.
func (m *Manager) releaseLocked(uid types.UID) bool {
	for _, v := range m.world.pods[uid] {
		if v.desired || v.since.IsZero() {
			v.since = time.Now()
		}
		v.desired, v.unclaimed = false, false
		if v.cancel != nil && (v.step == setUp || v.step == refresh || v.step == expand) {
			v.cancel()
		}
		if v.failed.step != tearDown {
			v.failed = failure{}
		}
		m.markLocked(v)
	}
	return len(m.world.pods[uid]) > 0
}

func sorted(list []*Error) []*Error {
	slices.SortFunc(list, func(a, b *Error) int { return cmp.Compare(a.Volume, b.Volume) })
	return list
}
