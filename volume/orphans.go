package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// orphanLogPeriod is the minimum time between two log lines about the same orphaned pod.
const orphanLogPeriod = time.Hour

// podOwnedPlugins are the plugins whose volumes contain only data of the pod, or copies: it is removed
// with the pod. Files of other volumes may belong to other owners.
var podOwnedPlugins = []string{
	"kubernetes.io/empty-dir", "kubernetes.io/configmap", "kubernetes.io/secret",
	"kubernetes.io/projected", "kubernetes.io/downward-api",
}

// Retain unmounts the volumes of orphaned pods that an earlier agent mounted, and removes their
// directories. keep reports whether a pod is desired or containers of it run; it must
// return true as long as this is unknown. Volumes that [Manager.Mount] was called for are left to
// [Manager.Unmount].
//
// It should be called periodically and after a pod has terminated. Volumes are torn down in the
// background, and the directory is removed afterwards. A failure is logged once per hour and retried by
// the next call. A directory that is not removed within 10 seconds, because a file system does not
// answer, does not delay the others: its removal continues, and later calls do not wait for it.
// It returns the error of ctx, or an error if the pod directories cannot be listed. It implements podworker.Retainer.
func (m *Manager) Retain(ctx context.Context, keep func(types.UID) bool) error {
	select {
	case <-m.reconstructed:
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	left := slices.Sorted(maps.Keys(m.world.pods))
	m.mu.Unlock()
	for _, uid := range left {
		if !keep(uid) {
			m.releaseOrphan(uid, func() bool { return keep(uid) })
		}
	}
	entries, err := os.ReadDir(filepath.Join(m.cfg.RootDir, "pods"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("volume: list pod directories: %w", err)
	}
	var round collected
	for _, e := range entries {
		if uid := types.UID(e.Name()); ctx.Err() == nil && e.IsDir() && !keep(uid) {
			m.sweepWithin(ctx, callWait, uid, func() bool { return keep(uid) }, &round)
		}
	}
	m.forgetLogged(entries)
	if m.cfg.Hooks.Collected != nil && ctx.Err() == nil {
		m.cfg.Hooks.Collected(round.orphans, round.failed)
	}
	return ctx.Err()
}

// HasVolumes reports whether the pod has volumes in the desired or actual state. Before the volumes of
// earlier agents are reconstructed it returns true. It does not block. Safe for concurrent use.
func (m *Manager) HasVolumes(uid types.UID) bool {
	select {
	case <-m.reconstructed:
	default:
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.world.pods[uid]) > 0
}

// releaseOrphan removes the volumes that an earlier agent mounted for an orphaned pod from the desired
// state.
func (m *Manager) releaseOrphan(uid types.UID, keep func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.world.pods[uid] {
		if v.unclaimed {
			v.unclaimed, v.desired, v.since = false, false, time.Now()
			m.orphans[uid] = keep
			m.markLocked(v)
		}
	}
}

// collected is the result of a Retain.
type collected struct {
	orphans int // directories of orphaned pods
	failed  int // of which this many could not be removed
}

// sweepWithin is sweep, but does not wait longer than limit. The removal then counts as failed.
func (m *Manager) sweepWithin(ctx context.Context, limit time.Duration, uid types.UID, keep func() bool, round *collected) {
	done, result := make(chan struct{}), new(collected)
	go func() {
		defer close(done)
		m.sweep(ctx, uid, keep, result)
	}()
	if await(ctx, done, limit) {
		round.orphans, round.failed = round.orphans+result.orphans, round.failed+result.failed
		return
	}
	round.orphans, round.failed = round.orphans+1, round.failed+1
	if ctx.Err() == nil {
		m.logOrphan(uid, fmt.Errorf("not removed within %v; a file system does not answer, or the directory is large", limit))
	}
}

// sweep removes the directory of a pod without volumes. A Mount for a pod with this UID waits for it, so
// keep is called again after Mount is blocked.
func (m *Manager) sweep(ctx context.Context, uid types.UID, keep func() bool, round *collected) {
	if !m.beginSweep(uid) {
		return
	}
	defer m.endSweep(uid)
	if keep() {
		return
	}
	err := m.removePod(ctx, uid)
	round.orphans++
	if err != nil {
		round.failed++
	}
	if m.cfg.Hooks.Orphan != nil {
		m.cfg.Hooks.Orphan(uid, err)
	}
	if err != nil && ctx.Err() == nil {
		m.logOrphan(uid, err)
	}
}

// beginSweep reports whether the pod's directory may be removed. If so, Mount blocks until endSweep.
func (m *Manager) beginSweep(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, removing := m.sweeps[uid]; removing || len(m.world.pods[uid]) > 0 {
		return false
	}
	m.sweeps[uid] = time.Now()
	return true
}

func (m *Manager) endSweep(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sweeps, uid)
	m.notifyLocked(uid)
	m.wakeUp()
}

// logOrphan logs that the directory of a pod was not removed, at most once per hour for each pod.
func (m *Manager) logOrphan(uid types.UID, err error) {
	m.mu.Lock()
	last, now := m.logged[uid], time.Now()
	quiet := !last.IsZero() && now.Sub(last) < orphanLogPeriod
	if !quiet {
		m.logged[uid] = now
	}
	m.mu.Unlock()
	if !quiet {
		m.log.Error("Failed to remove the directory of an orphaned pod; will retry", "podUID", uid, "err", err)
	}
}

// forgetLogged deletes the log times of pods whose directories no longer exist.
func (m *Manager) forgetLogged(dirs []os.DirEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid := range m.logged {
		if !slices.ContainsFunc(dirs, func(e os.DirEntry) bool { return e.Name() == string(uid) }) {
			delete(m.logged, uid)
		}
	}
}

// removePod removes the directory of a pod. It first unmounts everything below it, and removes nothing
// if that fails; then it removes volumes that are empty or owned by the pod, and then the rest.
func (m *Manager) removePod(ctx context.Context, uid types.UID) error {
	pod := Place{RootDir: m.cfg.RootDir, PodUID: uid}
	if err := unmountBelow(m.cfg.Mounter, pod.PodDir()); err != nil {
		return err
	}
	var errs []error
	for _, at := range placesIn(m.cfg.RootDir, uid) {
		if err := m.removeOrphanedVolume(ctx, at); err != nil {
			errs = append(errs, fmt.Errorf("orphaned pod %q found, but failed to rmdir() volume at path %v: %w", uid, at.Dir(), err))
		}
	}
	if err := removeSubPaths(ctx, m.cfg.Mounter, filepath.Join(pod.PodDir(), "volume-subpaths")); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	// These contain only directories now.
	for _, name := range []string{"volumes", "volumeDevices"} {
		if err := removeEmpty(filepath.Join(pod.PodDir(), name)); err != nil {
			return err
		}
	}
	// Files of other components, and of an earlier kubelet.
	rest, err := os.ReadDir(pod.PodDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range rest {
		if err := RemoveTree(ctx, m.cfg.Mounter, filepath.Join(pod.PodDir(), e.Name())); err != nil {
			errs = append(errs, err)
		}
	}
	if err := os.Remove(pod.PodDir()); err != nil && !errors.Is(err, os.ErrNotExist) && len(errs) == 0 {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// removeOrphanedVolume removes the directory of a volume that is not in the actual state.
func (m *Manager) removeOrphanedVolume(ctx context.Context, at Place) error {
	if !at.Block && slices.Contains(podOwnedPlugins, at.Plugin) {
		return RemoveTree(ctx, m.cfg.Mounter, at.Dir())
	}
	return removeEmpty(at.Dir())
}

// forceClean unmounts and removes a volume without a plugin or spec.
func (m *Manager) forceClean(ctx context.Context, at Place) error {
	if err := unmountBelow(m.cfg.Mounter, at.Dir()); err != nil {
		return err
	}
	return m.removeOrphanedVolume(ctx, at)
}

// removeEmptyDirs removes the empty directories, the plugin files and the checkpoints of a pod without
// volumes.
func (m *Manager) removeEmptyDirs(ctx context.Context, uid types.UID) {
	if !m.beginSweep(uid) {
		return
	}
	defer m.endSweep(uid)
	pod := Place{RootDir: m.cfg.RootDir, PodUID: uid}
	for _, name := range []string{"volumes", "volumeDevices", "volume-subpaths"} {
		_ = removeEmpty(filepath.Join(pod.PodDir(), name)) // Collect handles directories that are not empty
	}
	if err := RemoveTree(ctx, m.cfg.Mounter, filepath.Join(pod.PodDir(), "plugins")); err != nil {
		m.log.Debug("Failed to remove the plugin directory of a pod", "podUID", uid, "err", err)
	}
	if err := removeCheckpoints(pod.PodDir()); err != nil {
		m.log.Debug("Failed to remove the checkpoints of a pod's volumes", "podUID", uid, "err", err)
	}
	_ = os.Remove(pod.PodDir()) // fails if other components have files in it
}

// maxEntries bounds the entries of a directory that removeEmpty reads; a pod may have filled it.
const maxEntries = 10_000

// removeEmpty removes a tree that contains only directories and symbolic links, which block volumes
// consist of. It returns nil if path does not exist.
func removeEmpty(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		if info.Mode()&os.ModeSymlink == 0 {
			return fmt.Errorf("%s is not a directory", path)
		}
		return os.Remove(path)
	}
	entries, err := untrusted.ReadDir(path, maxEntries)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() && e.Type()&os.ModeSymlink == 0 {
			return fmt.Errorf("%s is not empty: it contains %s", path, e.Name())
		}
	}
	for _, e := range entries {
		if err := removeEmpty(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(path)
}
