package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// takeLocked begins a step with a volume. One is taken at a time (vol-19).
func (m *Manager) takeLocked(ctx context.Context, v *podVolume, s step, now time.Time) {
	switch s {
	case nothing:
		return
	case forget:
		m.world.drop(v)
		m.tellLocked(v.place.PodUID)
		m.wakeSharersLocked(v)
		if keep := m.orphans[v.place.PodUID]; keep != nil && len(m.world.pods[v.place.PodUID]) == 0 {
			delete(m.orphans, v.place.PodUID)
			m.steps.Go(func() { m.sweep(ctx, v.place.PodUID, keep, new(CollectInfo)) })
		}
		return
	case late:
		v.attachBy = now.Add(m.cfg.AttachTimeout)
		err := fmt.Errorf("timed out waiting for the volume to be attached to the node, after %v", m.cfg.AttachTimeout)
		v.failed = v.failed.after(late, err, now)
		pod, name, block := v.pod, v.name(), v.place.Block
		m.laterLocked(func() { m.failedEvent(pod, s, name, block, err) })
		m.markLocked(v)
		return
	case stage:
		m.stageLocked(ctx, v)
		return
	case unstage:
		m.takeDeviceLocked(ctx, v.device, s)
		return
	}
	if s == setUp || s == refresh || s == expand {
		if err := m.allowedLocked(v); err != nil {
			m.finishLocked(ctx, v, s, time.Now(), notBegun{err})
			return
		}
	}
	req := m.requestLocked(v)
	req.Refresh = s == refresh
	v.step, v.refresh = s, v.refresh && s != refresh && s != setUp
	ctx, v.cancel = context.WithCancel(ctx)
	begun, p := time.Now(), v.plugin
	m.steps.Go(func() {
		var ready SetUpResult
		var err error
		switch s {
		case setUp, refresh:
			ready, err = m.setUp(ctx, p, req)
		case expand:
			err = m.expand(ctx, p, v, req)
		case tearDown:
			err = m.tearDown(ctx, p, req)
		}
		m.mu.Lock()
		if err == nil && (s == setUp || s == refresh) {
			v.ready = ready.notBefore(time.Now().Add(refreshPause))
		}
		m.finishLocked(ctx, v, s, begun, err)
		m.unlock()
	})
}

// laterLocked calls f when mu is free again: nobody is called while it is held.
func (m *Manager) laterLocked(f func()) { m.later = append(m.later, f) }

// unlock unlocks mu, and then says what was to be said.
func (m *Manager) unlock() {
	later := m.later
	m.later = nil
	m.mu.Unlock()
	for _, f := range later {
		f()
	}
}

// allowedLocked returns why a volume must not be set up.
func (m *Manager) allowedLocked(v *podVolume) error {
	if v.failedSELab != nil {
		return v.failedSELab
	}
	if v.spec.hasAccessMode(v1.ReadWriteOncePod) { // vol-20
		for _, other := range m.world.volumes {
			if other.place.PodUID != v.place.PodUID && (other.state != NotMounted || other.step != nothing) && other.spec != nil && other.spec.PV != nil && other.spec.PV.Name == v.spec.PV.Name {
				return errors.New("volume uses the ReadWriteOncePod access mode and is already in use by another pod")
			}
		}
	}
	if v.mislabeled() {
		return fmt.Errorf("volume is in use by another pod with SELinux label %q", v.device.seLabel)
	}
	if o, ok := v.plugin.(MountOptioner); len(v.spec.MountOptions()) > 0 && (!ok || !o.SupportsMountOptions()) {
		return fmt.Errorf("the persistent volume has mountOptions %v, and %s takes none", v.spec.MountOptions(), v.place.Plugin)
	}
	if m.cfg.Node != nil && v.spec.PV != nil {
		return onNode(v.spec.PV, m.cfg.Node())
	}
	return nil
}

// wakeSharersLocked tries those again who could not have the volume because this
// pod had it.
func (m *Manager) wakeSharersLocked(gone *podVolume) {
	if gone.spec == nil || !gone.spec.hasAccessMode(v1.ReadWriteOncePod) {
		return
	}
	for _, v := range m.world.volumes {
		if v.wanted && v.spec != nil && v.spec.PV != nil && v.spec.PV.Name == gone.spec.PV.Name {
			v.failed.notBefore = time.Time{}
			m.markLocked(v)
		}
	}
}

// requestLocked returns what a plugin is to know of the volume.
func (m *Manager) requestLocked(v *podVolume) Request {
	req := Request{Place: v.place, Pod: v.pod, Spec: v.spec}
	if v.spec != nil {
		req.MountOptions = v.spec.MountOptions()
	}
	if v.seLabel != "" {
		req.SELinuxLabel = v.seLabel
		req.MountOptions = append(req.MountOptions, seLinuxMountOption(v.seLabel))
	}
	if v.attach && m.cfg.Attached != nil {
		req.DevicePath, _ = m.cfg.Attached(v.uniqueName())
	}
	pod := v.pod
	if pod == nil {
		return req
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		req.FSGroup, req.FSGroupPolicy = sc.FSGroup, sc.FSGroupChangePolicy
	}
	req.FSUser = commonUser(pod)
	ref := runtime.PodRef(pod)
	req.Event = func(eventType, reason, message string) {
		m.cfg.Record(runtime.Event{Object: ref, Type: eventType, Reason: reason, Message: message})
	}
	name := v.name()
	req.Progress = func(p OwnershipProgress) { // vol-66, F-40
		req.Event(v1.EventTypeWarning, "VolumePermissionChangeInProgress", fmt.Sprintf(
			"Setting volume ownership for volume %q is taking longer than expected: %d files looked at, %d changed in %v; consider using OnRootMismatch",
			name, p.Visited, p.Changed, p.Elapsed.Round(time.Second)))
	}
	return req
}

// setUp makes a record of the volume, and then the volume.
func (m *Manager) setUp(ctx context.Context, p Plugin, req Request) (SetUpResult, error) {
	if !req.Refresh {
		if err := m.remember(req); err != nil {
			return SetUpResult{}, notBegun{err}
		}
	}
	ready, err := p.SetUp(ctx, req)
	if err == nil && ready.Path != "" && ready.Device != "" {
		err = fmt.Errorf("volume: plugin %s says that the volume is both a directory and a device", req.Plugin)
	}
	if m.cfg.SELinuxLabel == nil {
		ready.SELinuxRelabel = false
	}
	return ready, err
}

// tearDown removes the volume, what parts of it are bound elsewhere, and then its
// record (vol-23).
func (m *Manager) tearDown(ctx context.Context, p Plugin, req Request) error {
	at := req.Place
	if err := removeSubPaths(ctx, m.cfg.Mounter, at.subPathsDir()); err != nil {
		return err
	}
	if p == nil {
		if err := m.forceClean(ctx, at); err != nil {
			return err
		}
	} else if err := p.TearDown(ctx, at); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // Run may have gone without us: the rest is a later Manager's
	}
	// Nothing but an empty directory may be left (vol-30); of one with
	// something in it nobody knows whose that is.
	if err := os.Remove(at.Dir()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("volume: %s is still there: %w", at, err)
	}
	return m.unremember(at)
}

// finishLocked notes what has come of a step.
func (m *Manager) finishLocked(ctx context.Context, v *podVolume, s step, begun time.Time, err error) {
	v.step = nothing
	calledOff := err != nil && (ctx.Err() != nil && errors.Is(err, context.Canceled))
	if v.cancel != nil {
		v.cancel()
		v.cancel = nil
	}
	switch {
	case err == nil:
		v.failed = failure{}
	case calledOff:
	default:
		v.failed = v.failed.after(s, err, time.Now())
	}
	switch s {
	case setUp:
		switch {
		case err == nil:
			v.state, v.inherited, v.wakeAt = InPlace, false, time.Time{}
			if v.size.IsZero() && v.spec.Claim != nil {
				v.size = v.spec.Claim.Status.Capacity[v1.ResourceStorage]
			}
		case isNotBegun(err): // it is what it was
		case isDefinite(err) && !v.inherited:
			v.state = NotMounted
		default:
			v.state = Uncertain // vol-21
		}
	case refresh:
		if err != nil {
			v.refresh = true
		}
	case tearDown:
		if v.state = NotMounted; err != nil {
			v.state = Uncertain // never "mounted" (vol-23)
		} else {
			v.inherited = false
		}
		v.ready = SetUpResult{}
	}
	m.markLocked(v)
	m.tellLocked(v.place.PodUID)
	info := OperationInfo{
		Operation: operationName(s), Plugin: v.place.Plugin, Volume: v.name(), PodUID: v.place.PodUID,
		Forced: s == tearDown && v.plugin == nil, Duration: time.Since(begun), Err: err,
	}
	if err == nil && (s == setUp || s == tearDown) {
		info.Total = time.Since(v.since)
	}
	pod, at := v.pod, v.place
	m.laterLocked(func() { m.outcome(info, pod, s, at, calledOff) })
}

// outcome tells the world how a step has ended.
func (m *Manager) outcome(info OperationInfo, pod *v1.Pod, s step, at Place, calledOff bool) {
	if m.cfg.Hooks.Operated != nil {
		m.cfg.Hooks.Operated(info)
	}
	switch {
	case calledOff:
	case info.Err == nil:
		if s == setUp && at.Block {
			m.event(pod, v1.EventTypeNormal, "SuccessfulMountVolume", fmt.Sprintf("MapVolume.MapPodDevice succeeded for volume %q volumeMapPath %q", info.Volume, at.Dir()))
		}
	case s == tearDown || s == unstage:
		m.log.Warn("a volume can't be removed", "volume", info.Volume, "plugin", info.Plugin, "uid", info.PodUID, "step", string(s), "err", info.Err)
	default:
		m.failedEvent(pod, s, info.Volume, at.Block, info.Err)
	}
}

// failedEvent tells the pod that a step has failed (vol-21, vol-22).
func (m *Manager) failedEvent(pod *v1.Pod, s step, volume string, block bool, err error) {
	act, reason := map[step]string{
		setUp: "MountVolume.SetUp", refresh: "MountVolume.SetUp", stage: "MountVolume.MountDevice", late: "MountVolume.WaitForAttach", expand: "MountVolume.NodeExpandVolume",
	}[s], "FailedMount"
	switch {
	case s == expand:
		reason = "FileSystemResizeFailed"
	case block:
		reason = "FailedMapVolume"
		act = map[step]string{setUp: "MapVolume.MapPodDevice", refresh: "MapVolume.MapPodDevice", stage: "MapVolume.SetUpDevice", late: "MapVolume.WaitForAttach"}[s]
	}
	m.event(pod, v1.EventTypeWarning, reason, fmt.Sprintf("%s failed for volume %q : %v", act, volume, err))
}

func (m *Manager) event(pod *v1.Pod, eventType, reason, message string) {
	if pod != nil {
		m.cfg.Record(runtime.Event{Object: runtime.PodRef(pod), Type: eventType, Reason: reason, Message: message})
	}
}

// expand makes the file system as large as the persistent volume (vol-16).
func (m *Manager) expand(ctx context.Context, p Plugin, v *podVolume, req Request) error {
	size, err := p.(Expander).Expand(ctx, req, req.Spec.PV.Spec.Capacity[v1.ResourceStorage])
	if err != nil {
		return err
	}
	if m.cfg.Expanded != nil && req.Spec.Claim != nil {
		if err := m.cfg.Expanded(ctx, req.Spec.Claim, size); err != nil {
			return err
		}
	}
	req.Event(v1.EventTypeNormal, "FileSystemResizeSuccessful", fmt.Sprintf("MountVolume.NodeExpandVolume succeeded for volume %q", req.Spec.DirName()))
	m.mu.Lock()
	defer m.mu.Unlock()
	v.size = req.Spec.PV.Spec.Capacity[v1.ResourceStorage] // a driver that makes it smaller is not asked for ever
	return nil
}

// stageLocked begins to make a device ready, for all pods (vol-20).
func (m *Manager) stageLocked(ctx context.Context, v *podVolume) {
	d := v.device
	if err := m.allowedLocked(v); err != nil {
		m.finishLocked(ctx, v, setUp, time.Now(), notBegun{err})
		return
	}
	req := m.requestLocked(v)
	d.step, d.seLabel = stage, req.SELinuxLabel
	begun, p, name, users := time.Now(), d.plugin, v.name(), []types.UID(nil)
	m.steps.Go(func() {
		err := m.remember(req) // the pod's, from which the device is known, too
		if err == nil {
			err = m.rememberDevice(d.name, p.Name(), req.SELinuxLabel, req.Spec)
		}
		if err == nil {
			err = p.(Stager).Stage(ctx, req)
		} else {
			err = notBegun{err}
		}
		m.mu.Lock()
		defer m.unlock()
		d.step = nothing
		switch {
		case err == nil:
			d.state, d.inherited, d.failed = InPlace, false, failure{}
		case isNotBegun(err):
			d.failed = d.failed.after(stage, err, time.Now())
		case isDefinite(err) && !d.inherited:
			d.state, d.failed = NotMounted, d.failed.after(stage, err, time.Now())
		default:
			d.state, d.failed = Uncertain, d.failed.after(stage, err, time.Now())
		}
		m.markDeviceLocked(d)
		info := OperationInfo{Operation: operationName(stage), Plugin: p.Name(), Volume: name, Duration: time.Since(begun), Err: err}
		calledOff := err != nil && ctx.Err() != nil
		m.laterLocked(func() { m.outcome(info, nil, stage, v.place, true) })
		if err == nil || calledOff {
			return
		}
		for _, user := range d.users {
			if user.wanted && user.pod != nil && !slices.Contains(users, user.place.PodUID) {
				users = append(users, user.place.PodUID)
				pod, name, block := user.pod, user.name(), user.place.Block
				m.laterLocked(func() { m.failedEvent(pod, stage, name, block, err) })
			}
		}
	})
}

// takeDeviceLocked begins a step with a device that no pod has mounted.
func (m *Manager) takeDeviceLocked(ctx context.Context, d *device, s step) {
	switch s {
	case forget:
		delete(m.world.devices, d.name)
		delete(m.world.dirtyDevices, d.name)
	case unstage:
		d.step = unstage
		begun, p, spec := time.Now(), d.plugin, d.spec
		m.steps.Go(func() {
			err := p.(Stager).Unstage(ctx, spec)
			if err == nil {
				err = m.unrememberDevice(d.name)
			}
			m.mu.Lock()
			defer m.unlock()
			d.step = nothing
			if err != nil {
				d.state, d.failed = Uncertain, d.failed.after(unstage, err, time.Now())
			} else {
				d.state, d.seLabel, d.failed = NotMounted, "", failure{}
			}
			m.markDeviceLocked(d)
			info := OperationInfo{Operation: operationName(unstage), Plugin: p.Name(), Volume: spec.DirName(), Duration: time.Since(begun), Err: err}
			m.laterLocked(func() { m.outcome(info, nil, unstage, Place{}, err != nil && ctx.Err() != nil) })
		})
	}
}

// commonUser returns the user that all containers of the pod run as, if it is one
// (vol-55).
func commonUser(pod *v1.Pod) *int64 {
	var of *int64
	if sc := pod.Spec.SecurityContext; sc != nil {
		of = sc.RunAsUser
	}
	var common *int64
	for c := range podspec.Containers(pod) {
		user := of
		if sc := c.SecurityContext; sc != nil && sc.RunAsUser != nil {
			user = sc.RunAsUser
		}
		if user == nil || common != nil && *common != *user {
			return nil
		}
		common = user
	}
	return common
}
