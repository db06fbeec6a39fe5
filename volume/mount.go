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

	"github.com/kubeparts/kubeparts/runtime"
)

// Mount says that the pod is wanted, and waits until each volume that a container
// of it uses is ready (vol-26). It returns where they are, by the pod's names of
// them; images, which the runtime has, are left out. It is to be called at each
// sync of the pod: what changes is brought up to date then, too, which is not
// waited for (vol-11).
//
// The error is a [*MountError], at the latest after Config.WaitTimeout; what is
// waited for goes on, and a later call finds it done.
func (m *Manager) Mount(ctx context.Context, pod *v1.Pod) (map[string]runtime.Volume, error) {
	list := uses(pod)
	if len(list) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.WaitTimeout)
	defer cancel()
	if err := m.settled(ctx, pod.UID); err != nil {
		return nil, fmt.Errorf("volume: %w", err)
	}
	var bad []*VolumeError
	var wants []want
	for _, u := range list {
		w, err := m.want(ctx, pod, u)
		if err != nil {
			bad = append(bad, &VolumeError{Volume: u.volume.Name, Phase: NotProcessed, Err: err})
			continue
		}
		wants = append(wants, w)
	}
	if err := m.settled(ctx, pod.UID); err != nil { // also if it was asked for in the meantime
		return nil, fmt.Errorf("volume: %w", err)
	}
	m.wish(pod, wants)
	return m.awaitMounted(ctx, pod, wants, bad)
}

// settled waits until what an earlier agent left is known, and the directory of
// an earlier pod with that UID is gone.
func (m *Manager) settled(ctx context.Context, uid types.UID) error {
	select {
	case <-m.found:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the manager to run: %w", ctx.Err())
	}
	for {
		m.mu.Lock()
		if !m.sweeps[uid] {
			m.mu.Unlock()
			return nil
		}
		changed := m.watchLocked(uid)
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for what an earlier pod has left to be removed: %w", ctx.Err())
		}
	}
}

// A want is a volume that a pod wants, and all that is known of it.
type want struct {
	name     string // in the pod
	readOnly bool
	place    Place
	plugin   Plugin
	spec     *Spec
	shared   string // name of its device; "": it is not staged
	attach   bool
	refs     []ObjectRef

	seLinuxMount bool // the plugin mounts it with a label
}

// want finds out what a volume of the pod is, and whose.
func (m *Manager) want(ctx context.Context, pod *v1.Pod, u use) (want, error) {
	spec, err := resolve(ctx, m.cfg.Claims, pod, u)
	if err != nil {
		if spec = m.known(pod.UID, u.volume.Name, err); spec == nil {
			return want{}, err
		}
		m.log.Debug("a volume's claim can't be read; what is known of it is used", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "volume", u.volume.Name, "err", err)
	}
	if m.cfg.Translate != nil {
		if spec, err = m.cfg.Translate(spec); err != nil {
			return want{}, err
		}
	}
	w := want{name: u.volume.Name, readOnly: spec.ReadOnly, spec: spec}
	if w.plugin, err = m.cfg.pluginFor(spec); err != nil {
		return want{}, fmt.Errorf("volume %q: %w", u.volume.Name, err)
	}
	w.place = Place{RootDir: m.cfg.RootDir, PodUID: pod.UID, Plugin: w.plugin.Name(), Name: spec.DirName(), Block: spec.Block}
	if err := w.place.check(); err != nil {
		return want{}, err
	}
	if blocks, ok := w.plugin.(BlockMapper); spec.Block && (!ok || !blocks.SupportsBlock()) {
		return want{}, fmt.Errorf("volume %q: %s has no block volumes", u.volume.Name, w.plugin.Name())
	}
	if s, ok := w.plugin.(Stager); ok {
		shared, err := s.SharedName(spec)
		if err != nil {
			return want{}, fmt.Errorf("volume %q: %w", u.volume.Name, err)
		}
		if shared != "" {
			w.shared = UniqueName(w.place, shared, "")
		}
	}
	if a, ok := w.plugin.(Attacher); ok && m.cfg.Attached != nil {
		if w.attach, err = a.NeedsAttach(ctx, spec); err != nil {
			return want{}, fmt.Errorf("volume %q: %w", u.volume.Name, err)
		}
	}
	if s, ok := w.plugin.(SELinuxMounter); ok && m.cfg.SELinuxLabel != nil && spec.hasAccessMode(v1.ReadWriteOncePod) {
		if w.seLinuxMount, err = s.SupportsSELinuxMount(ctx, spec); err != nil {
			return want{}, fmt.Errorf("volume %q: %w", u.volume.Name, err)
		}
	}
	if r, ok := w.plugin.(ObjectReferrer); ok {
		w.refs = r.ObjectRefs(pod, spec)
	}
	return w, nil
}

// known returns the spec of a volume that is there already, if that is better
// than the error: the pod has it mounted, or the claim could not be read and the
// volume was mounted by an earlier agent.
func (m *Manager) known(uid types.UID, name string, err error) *Spec {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.world.named(uid, name)
	_, unread := errors.AsType[errNotFetched](err)
	if v == nil || v.spec == nil || v.state != InPlace && !unread {
		return nil
	}
	return v.spec
}

// wish makes what the pod wants what is wanted.
func (m *Manager) wish(pod *v1.Pod, wants []want) {
	m.mu.Lock()
	defer m.mu.Unlock()
	writable := map[Place]bool{} // a pod may have one claim by two names
	for _, of := range wants {
		writable[of.place] = writable[of.place] || !of.readOnly
	}
	for _, of := range wants {
		v := m.world.add(of.place)
		if of.spec.ReadOnly && writable[of.place] {
			spec := *of.spec
			spec.ReadOnly = false
			of.spec = &spec
		}
		if !v.wanted {
			v.since = time.Now()
			v.attachBy = v.since.Add(m.cfg.AttachTimeout)
			v.failed = failure{} // of tearing it down
		}
		v.plugin, v.spec, v.pod, v.kept, v.wanted = of.plugin, of.spec, pod, false, true
		v.names[of.name] = of.readOnly
		v.attach = of.attach
		m.world.setRefs(v, of.refs)
		delete(m.orphans, pod.UID)
		if of.shared != "" {
			d := m.world.addDevice(of.shared, of.plugin, of.spec)
			d.plugin, d.spec = of.plugin, of.spec
			m.world.setDevice(v, d)
		}
		if v.seLabel, v.failedSELab = m.cfg.seLinuxUse(pod, of, v.names).label(m.cfg.SELinuxLabel); v.failedSELab != nil {
			v.failedSELab = fmt.Errorf("volume %q: %w", of.name, v.failedSELab)
		}
		if v.state == InPlace && v.refreshes() {
			v.refresh = true // vol-11
		}
		m.markLocked(v)
	}
	m.stats.add(pod.UID)
}

// awaitMounted waits for the volumes of the pod.
func (m *Manager) awaitMounted(ctx context.Context, pod *v1.Pod, wants []want, bad []*VolumeError) (map[string]runtime.Volume, error) {
	for {
		m.mu.Lock()
		waiting := m.waitingLocked(wants)
		var changed <-chan struct{}
		if len(bad) == 0 && len(waiting) > 0 {
			changed = m.watchLocked(pod.UID)
		}
		ready := m.readyLocked(wants)
		m.mu.Unlock()
		switch {
		case len(bad) > 0: // there is nothing to wait for (vol-28)
			return nil, &MountError{Volumes: sorted(append(waiting, bad...))}
		case len(waiting) == 0:
			return ready, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			m.mu.Lock()
			waiting, ready := m.waitingLocked(wants), m.readyLocked(wants)
			m.mu.Unlock()
			if len(waiting) == 0 {
				return ready, nil
			}
			return nil, &MountError{Volumes: sorted(waiting), Err: ctx.Err()}
		}
	}
}

// readyLocked returns where the volumes are.
func (m *Manager) readyLocked(wants []want) map[string]runtime.Volume {
	ready := make(map[string]runtime.Volume, len(wants))
	for _, of := range wants {
		if v := m.world.volumes[of.place]; v != nil && v.ready.Volume != (runtime.Volume{}) {
			at := v.ready.Volume
			at.ReadOnly = at.ReadOnly || of.readOnly
			ready[of.name] = at
		}
	}
	return ready
}

// waitingLocked returns the volumes that are not ready.
func (m *Manager) waitingLocked(wants []want) []*VolumeError {
	var waiting []*VolumeError
	for _, of := range wants {
		v := m.world.volumes[of.place]
		switch {
		case v == nil || !v.wanted:
			waiting = append(waiting, &VolumeError{Volume: of.name, Phase: NotProcessed, Err: errors.New("the pod is being removed")})
		case v.state != InPlace || v.step == tearDown:
			n := v.notReady(m.attachedLocked(v))
			n.Volume = of.name
			waiting = append(waiting, n)
		}
	}
	return waiting
}

// notReady tells why the volume is not ready, or not gone.
func (v *podVolume) notReady(attached bool) *VolumeError {
	n := &VolumeError{Volume: v.place.Name, Phase: SettingUp, Err: v.failed.err}
	for name := range v.names {
		n.Volume = name
	}
	failed := v.failed
	if v.device != nil && v.device.failed.err != nil && v.failed.err == nil {
		failed = v.device.failed
		n.Err = failed.err
	}
	switch {
	case !v.wanted:
		n.Phase = TearingDown
	case v.attach && !attached:
		n.Phase = WaitingAttach
	case v.device != nil && v.device.state != InPlace:
		n.Phase = WaitingDevice
	}
	if v.step == nothing && failed.notBefore.After(time.Now()) && n.Phase != WaitingAttach {
		n.Phase, n.RetryAt = BackingOff, failed.notBefore
	}
	return n
}

// Unmount says that the pod is over, and waits until none of its volumes is left
// and their directories are gone (vol-29, vol-30). No container of the pod may
// run any more. Only the pod's UID counts: a volume that an earlier agent
// mounted, and the pod's spec does not name, goes, too.
//
// The error is an [*UnmountError], at the latest after Config.WaitTimeout; what is
// waited for goes on.
func (m *Manager) Unmount(ctx context.Context, pod *v1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.WaitTimeout)
	defer cancel()
	if err := m.settled(ctx, pod.UID); err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	m.mu.Lock()
	m.stats.drop(pod.UID)
	had := m.releaseLocked(pod.UID)
	m.mu.Unlock()
	for {
		m.mu.Lock()
		var left []*VolumeError
		for _, v := range m.world.of(pod.UID) {
			left = append(left, v.notReady(true))
		}
		var changed <-chan struct{}
		if len(left) > 0 { // nothing is kept of a pod that is over
			changed = m.watchLocked(pod.UID)
		}
		m.mu.Unlock()
		if len(left) == 0 {
			if had {
				m.tidy(ctx, pod.UID)
			}
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return &UnmountError{Volumes: sorted(left), Err: ctx.Err()}
		}
	}
}

// releaseLocked says that nobody wants the volumes of the pod, and calls off what
// is being done to get them ready. It reports whether there are any.
func (m *Manager) releaseLocked(uid types.UID) bool {
	for _, v := range m.world.pods[uid] {
		if v.wanted || v.since.IsZero() {
			v.since = time.Now()
		}
		v.wanted, v.kept = false, false
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

func sorted(list []*VolumeError) []*VolumeError {
	slices.SortFunc(list, func(a, b *VolumeError) int { return cmp.Compare(a.Volume, b.Volume) })
	return list
}
