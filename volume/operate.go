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

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// takeLocked starts a step of a volume. At most one step of a volume is in progress.
func (m *Manager) takeLocked(ctx context.Context, v *podVolume, s step, now time.Time) {
	switch s {
	case noStep:
		return
	case forget:
		m.world.drop(v)
		m.notifyLocked(v.place.PodUID)
		m.wakeSharersLocked(v)
		if keep := m.orphans[v.place.PodUID]; keep != nil && len(m.world.pods[v.place.PodUID]) == 0 {
			delete(m.orphans, v.place.PodUID)
			m.steps.Go(func() { m.sweep(ctx, v.place.PodUID, keep, new(collected)) })
		}
		return
	case late:
		v.attachBy = now.Add(m.cfg.PersistentVolumes.AttachTimeout)
		err := fmt.Errorf("timed out waiting for the volume to be attached to the node, after %v", m.cfg.PersistentVolumes.AttachTimeout)
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
	v.step, v.stepAt, v.refresh = s, time.Now(), v.refresh && s != refresh && s != setUp
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
		again := s == setUp && err == nil && refreshes(p, req.Spec)
		m.mu.Lock()
		if s == setUp && err == nil {
			v.refreshes = again
		}
		if err == nil && (s == setUp || s == refresh) {
			v.ready = ready.notBefore(time.Now().Add(minRefreshPeriod))
		}
		m.finishLocked(ctx, v, s, begun, err)
		m.unlock()
	})
}

// laterLocked calls f after mu is unlocked: no callback is called while mu is locked.
func (m *Manager) laterLocked(f func()) { m.later = append(m.later, f) }

// unlock unlocks mu and makes the calls of laterLocked.
func (m *Manager) unlock() {
	later := m.later
	m.later = nil
	m.mu.Unlock()
	for _, f := range later {
		f()
	}
}

// allowedLocked returns an error if the volume must not be set up.
func (m *Manager) allowedLocked(v *podVolume) error {
	if v.failedSELab != nil {
		return v.failedSELab
	}
	if v.spec.hasAccessMode(v1.ReadWriteOncePod) {
		for _, other := range m.world.volumes {
			if other.place.PodUID != v.place.PodUID && (other.state != notMounted || other.step != noStep) && other.spec != nil && other.spec.PV != nil && other.spec.PV.Name == v.spec.PV.Name {
				return errors.New("volume uses the ReadWriteOncePod access mode and is already in use by another pod")
			}
		}
	}
	if v.mislabeled() && v.device.spec.Block != v.spec.Block {
		return fmt.Errorf("volume is in use by another pod as a %s", map[bool]string{true: "block device", false: "file system"}[v.device.spec.Block])
	}
	if v.mislabeled() && v.device.seLabel != v.seLabel {
		return fmt.Errorf("volume is in use by another pod with SELinux label %q", v.device.seLabel)
	}
	if len(v.spec.MountOptions()) > 0 && !v.mountOptions {
		return fmt.Errorf("plugin %[2]s does not support the mountOptions %[1]v of the persistent volume", v.spec.MountOptions(), v.place.Plugin)
	}
	if m.cfg.PersistentVolumes.Node != nil && v.spec.PV != nil {
		return checkNodeAffinity(v.spec.PV, m.cfg.PersistentVolumes.Node.Object())
	}
	return nil
}

// wakeSharersLocked retries the volumes that were blocked by the use of a ReadWriteOncePod volume, or of
// one with another SELinux label.
func (m *Manager) wakeSharersLocked(gone *podVolume) {
	if gone.spec == nil || gone.spec.PV == nil || m.cfg.SELinuxLabel == nil && !gone.spec.hasAccessMode(v1.ReadWriteOncePod) {
		return
	}
	for _, v := range m.world.volumes {
		if v.desired && v.spec != nil && v.spec.PV != nil && v.spec.PV.Name == gone.spec.PV.Name {
			v.failed.notBefore = time.Time{}
			m.markLocked(v)
		}
	}
}

// requestLocked returns the request for a step of the volume.
func (m *Manager) requestLocked(v *podVolume) Request {
	req := Request{Place: v.place, Pod: v.pod, Spec: v.spec}
	if v.device != nil {
		req.StagedSpec = v.device.spec
	}
	if v.spec != nil {
		req.MountOptions = v.spec.MountOptions()
	}
	if v.seLabel != "" {
		req.SELinuxLabel = v.seLabel
		req.MountOptions = append(req.MountOptions, seLinuxMountOption(v.seLabel))
	}
	if v.attach && m.cfg.PersistentVolumes.Node != nil {
		req.DevicePath, _ = m.cfg.PersistentVolumes.Node.Attached(v.uniqueName())
	}
	pod := v.pod
	if pod == nil {
		return req
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		req.FSGroup, req.FSGroupPolicy = sc.FSGroup, sc.FSGroupChangePolicy
	}
	req.FSUser = podspec.CommonUser(pod)
	ref := runtime.PodRef(pod)
	req.Event = func(eventType, reason, message string) {
		m.cfg.Record(runtime.Event{Object: ref, Type: eventType, Reason: reason, Message: message})
	}
	name := v.name()
	req.Progress = func(visited, changed int64, elapsed time.Duration) {
		req.Event(v1.EventTypeWarning, "VolumePermissionChangeInProgress", fmt.Sprintf(
			"Setting volume ownership for volume %q is taking longer than expected: %d files looked at, %d changed in %v; consider using OnRootMismatch",
			name, visited, changed, elapsed.Round(time.Second)))
	}
	return req
}

// setUp writes the checkpoint of the volume and sets it up.
func (m *Manager) setUp(ctx context.Context, p Plugin, req Request) (SetUpResult, error) {
	if !req.Refresh {
		if err := m.writeVolumeCheckpoint(req); err != nil {
			return SetUpResult{}, notBegun{err}
		}
	}
	ready, err := p.SetUp(ctx, req)
	if err == nil && ready.Path != "" && ready.Device != "" {
		err = fmt.Errorf("volume: plugin %s returned both a directory and a device", req.Plugin)
	}
	if m.cfg.SELinuxLabel == nil {
		ready.SELinuxRelabel = false
	}
	return ready, err
}

// tearDown removes the sub-path mounts of the volume, the volume, and then its checkpoint.
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
		return err // Run may have returned after StopTimeout; a later Manager does the rest
	}
	// Only an empty directory is removed: the owner of files in it is unknown.
	if err := os.Remove(at.Dir()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("volume: remove %s: %w", at, err)
	}
	return m.removeVolumeCheckpoint(at)
}

// finishLocked updates the state after a step.
func (m *Manager) finishLocked(ctx context.Context, v *podVolume, s step, begun time.Time, err error) {
	v.step = noStep
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
			v.state, v.wakeAt = inPlace, time.Time{}
			if v.size.IsZero() && v.spec.Claim != nil {
				v.size = v.spec.Claim.Status.Capacity[v1.ResourceStorage]
			}
		case isNotBegun(err) || isDefinite(err): // what an earlier attempt left is unchanged
		default:
			v.state = uncertain
		}
	case refresh:
		if err != nil {
			v.refresh = true
		}
	case tearDown:
		if v.state = notMounted; err != nil {
			v.state = uncertain // never "mounted", which would start containers
		}
		v.ready = SetUpResult{}
	}
	m.markLocked(v)
	m.notifyLocked(v.place.PodUID)
	info := OperationInfo{
		Operation: operationName(s), Plugin: v.place.Plugin, Volume: v.name(), PodUID: v.place.PodUID,
		Migrated: v.spec.migrated(), Forced: s == tearDown && v.plugin == nil, Duration: time.Since(begun), Err: err,
	}
	if err == nil && (s == setUp || s == tearDown) {
		info.Total = time.Since(v.since)
	}
	pod, at := v.pod, v.place
	m.laterLocked(func() { m.outcome(info, pod, s, at, calledOff) })
}

// outcome reports the result of a step to the hooks, the log and the pod.
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
		m.log.Warn("Failed to unmount volume; will retry", "volumeName", info.Volume, "plugin", info.Plugin, "podUID", info.PodUID, "step", string(s), "err", info.Err)
	default:
		m.failedEvent(pod, s, info.Volume, at.Block, info.Err)
	}
}

// failedEvent records the event of a failed step.
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

// expand expands the file system to the capacity of the persistent volume.
func (m *Manager) expand(ctx context.Context, p Plugin, v *podVolume, req Request) error {
	expander, _ := compose.As[Expander](p)
	size, err := expander.Expand(ctx, req, req.Spec.PV.Spec.Capacity[v1.ResourceStorage])
	if err != nil {
		return err
	}
	if req.Spec.Claim != nil {
		if err := m.cfg.PersistentVolumes.Claims.ClaimExpanded(ctx, req.Spec.Claim, size); err != nil {
			return err
		}
	}
	req.Event(v1.EventTypeNormal, "FileSystemResizeSuccessful", fmt.Sprintf("MountVolume.NodeExpandVolume succeeded for volume %q", req.Spec.DirName()))
	m.mu.Lock()
	defer m.mu.Unlock()
	v.size = req.Spec.PV.Spec.Capacity[v1.ResourceStorage] // a driver that reports a smaller size is not called again
	return nil
}

// stageLocked starts to stage a device for all pods.
func (m *Manager) stageLocked(ctx context.Context, v *podVolume) {
	d := v.device
	if err := m.allowedLocked(v); err != nil {
		m.finishLocked(ctx, v, setUp, time.Now(), notBegun{err})
		return
	}
	req := m.requestLocked(v)
	req.StagedSpec = nil
	staging := req
	if d.state == notMounted || d.stagedAs(v.spec) {
		d.spec = v.spec
	} else { // other pods may have it mounted
		staging.Spec, staging.MountOptions = d.spec, append(d.spec.MountOptions(), req.MountOptions[len(v.spec.MountOptions()):]...)
	}
	d.step, d.stepAt, d.seLabel = stage, time.Now(), req.SELinuxLabel
	begun, p, name, users := time.Now(), d.plugin, v.name(), []types.UID(nil)
	m.steps.Go(func() {
		err := m.writeVolumeCheckpoint(req) // the device is reconstructed from the pod's checkpoint, too
		if err == nil {
			err = m.writeDeviceCheckpoint(d.name, p.Name(), req.SELinuxLabel, staging.Spec)
		}
		if err == nil {
			err = stager(p).Stage(ctx, staging)
		} else {
			err = notBegun{err}
		}
		m.mu.Lock()
		defer m.unlock()
		d.step = noStep
		switch {
		case err == nil:
			d.state, d.failed = inPlace, failure{}
		case isNotBegun(err) || isDefinite(err): // as in finishLocked
			d.failed = d.failed.after(stage, err, time.Now())
		default:
			d.state, d.failed = uncertain, d.failed.after(stage, err, time.Now())
		}
		m.markDeviceLocked(d)
		info := OperationInfo{Operation: operationName(stage), Plugin: p.Name(), Volume: name, Migrated: req.Spec.migrated(), Duration: time.Since(begun), Err: err}
		calledOff := err != nil && ctx.Err() != nil
		m.laterLocked(func() { m.outcome(info, nil, stage, v.place, true) })
		if err == nil || calledOff {
			return
		}
		for _, user := range d.users {
			if user.desired && user.pod != nil && !slices.Contains(users, user.place.PodUID) {
				users = append(users, user.place.PodUID)
				pod, name, block := user.pod, user.name(), user.place.Block
				m.laterLocked(func() { m.failedEvent(pod, stage, name, block, err) })
			}
		}
	})
}

// takeDeviceLocked starts a step of a device that no pod has mounted.
func (m *Manager) takeDeviceLocked(ctx context.Context, d *device, s step) {
	switch s {
	case forget:
		delete(m.world.devices, d.name)
		delete(m.world.dirtyDevices, d.name)
	case unstage:
		d.step, d.stepAt = unstage, time.Now()
		begun, p, spec := time.Now(), d.plugin, d.spec
		m.steps.Go(func() {
			err := stager(p).Unstage(ctx, spec)
			if err == nil {
				err = m.removeDeviceCheckpoint(d.name)
			}
			m.mu.Lock()
			defer m.unlock()
			d.step = noStep
			if err != nil {
				d.state, d.failed = uncertain, d.failed.after(unstage, err, time.Now())
			} else {
				d.state, d.seLabel, d.failed = notMounted, "", failure{}
			}
			m.markDeviceLocked(d)
			info := OperationInfo{Operation: operationName(unstage), Plugin: p.Name(), Volume: spec.DirName(), Migrated: spec.migrated(), Duration: time.Since(begun), Err: err}
			m.laterLocked(func() { m.outcome(info, nil, unstage, Place{}, err != nil && ctx.Err() != nil) })
		})
	}
}
