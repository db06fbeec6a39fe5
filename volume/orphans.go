package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// complainEvery is how often it is said that a pod's directory cannot be removed.
const complainEvery = time.Hour

// ownData are the plugins whose volumes hold nothing but what is the pod's own,
// or a copy: what is left of them goes with the pod. Of others nobody knows
// whose the files are (F-39).
var ownData = []string{
	"kubernetes.io/empty-dir", "kubernetes.io/configmap", "kubernetes.io/secret",
	"kubernetes.io/projected", "kubernetes.io/downward-api",
}

// Collect removes what is left of pods that nobody keeps: volumes that an
// earlier agent has mounted, and then the pods' directories (vol-12, vol-36 …
// vol-38). Keep reports whether a pod is wanted, or whether the runtime still has
// anything of it; as long as that is not known, it must say true. Pods that
// [Manager.Mount] was called for are [Manager.Unmount]'s.
//
// It is to be called now and then, and when a pod is gone. Volumes are torn down
// in the background, after which the directory goes, too. What cannot be removed
// is left, and one line in an hour tells of it.
func (m *Manager) Collect(ctx context.Context, keep func(types.UID) bool) error {
	select {
	case <-m.found:
	case <-ctx.Done():
		return ctx.Err()
	}
	var left []types.UID
	m.mu.Lock()
	for uid := range m.world.pods {
		left = append(left, uid)
	}
	m.mu.Unlock()
	for _, uid := range left {
		if !keep(uid) {
			m.abandon(uid, func() bool { return keep(uid) })
		}
	}
	entries, err := os.ReadDir(filepath.Join(m.cfg.RootDir, "pods"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("volume: directories of pods: %w", err)
	}
	var round CollectInfo
	for _, e := range entries {
		if uid := types.UID(e.Name()); ctx.Err() == nil && e.IsDir() && !keep(uid) {
			m.sweep(ctx, uid, func() bool { return keep(uid) }, &round)
		}
	}
	m.forgive(entries)
	if m.cfg.Hooks.Collected != nil && ctx.Err() == nil {
		m.cfg.Hooks.Collected(round)
	}
	return ctx.Err()
}

// HasVolumes reports whether anything of the pod's volumes is still there, or may
// be, because it is not known yet what an earlier agent has left. A pod's cgroup
// stays for as long (cm-44).
func (m *Manager) HasVolumes(uid types.UID) bool {
	select {
	case <-m.found:
	default:
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.world.pods[uid]) > 0
}

// abandon says that nobody wants what an earlier agent has left of a pod.
func (m *Manager) abandon(uid types.UID, keep func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.world.pods[uid] {
		if v.kept {
			v.kept, v.wanted, v.since = false, false, time.Now()
			m.orphans[uid] = keep
			m.markLocked(v)
		}
	}
}

// sweep removes the directory of a pod of which no volume is known. A Mount for a
// pod with that UID waits for it; so keep is asked again when that is sure.
func (m *Manager) sweep(ctx context.Context, uid types.UID, keep func() bool, round *CollectInfo) {
	if !m.beginSweep(uid) {
		return
	}
	defer m.endSweep(uid)
	if keep() {
		return
	}
	err := m.removePod(ctx, uid)
	round.Orphans++
	if err != nil {
		round.Failed++
	}
	if m.cfg.Hooks.Orphan != nil {
		m.cfg.Hooks.Orphan(OrphanInfo{PodUID: uid, Err: err})
	}
	if err != nil && ctx.Err() == nil {
		m.complain(uid, err)
	}
}

// beginSweep reports whether the pod's directory may be removed, and keeps
// volumes from being made in it.
func (m *Manager) beginSweep(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sweeps[uid] || len(m.world.pods[uid]) > 0 {
		return false
	}
	m.sweeps[uid] = true
	return true
}

func (m *Manager) endSweep(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sweeps, uid)
	m.tellLocked(uid)
}

// complain logs one line for a pod in an hour.
func (m *Manager) complain(uid types.UID, err error) {
	m.mu.Lock()
	last, now := m.told[uid], time.Now()
	quiet := !last.IsZero() && now.Sub(last) < complainEvery
	if !quiet {
		m.told[uid] = now
	}
	m.mu.Unlock()
	if !quiet {
		m.log.Error("an orphaned pod's directory is left", "uid", uid, "err", err)
	}
}

// forgive forgets the complaints about pods whose directories are gone.
func (m *Manager) forgive(dirs []os.DirEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid := range m.told {
		if !slices.ContainsFunc(dirs, func(e os.DirEntry) bool { return e.Name() == string(uid) }) {
			delete(m.told, uid)
		}
	}
}

// removePod removes the directory of a pod: what is mounted in it is unmounted
// first, and if that fails nothing is touched (vol-36); then what is left of
// volumes, as long as it is empty or the pod's own; then the rest.
func (m *Manager) removePod(ctx context.Context, uid types.UID) error {
	pod := Place{RootDir: m.cfg.RootDir, PodUID: uid}
	if err := unmountBelow(m.cfg.Mounter, pod.PodDir()); err != nil {
		return err
	}
	var errs []error
	for _, at := range placesIn(m.cfg.RootDir, uid) {
		if err := m.removeLeftover(ctx, at); err != nil {
			errs = append(errs, fmt.Errorf("orphaned pod %q found, but failed to rmdir() volume at path %v: %w", uid, at.Dir(), err)) // vol-37
		}
	}
	if err := removeSubPaths(ctx, m.cfg.Mounter, filepath.Join(pod.PodDir(), "volume-subpaths")); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	// Now they hold directories only.
	for _, name := range []string{"volumes", "volumeDevices"} {
		if err := removeEmpty(filepath.Join(pod.PodDir(), name)); err != nil {
			return err
		}
	}
	// Entries that their owners have left, and those of an earlier kubelet.
	rest, err := os.ReadDir(pod.PodDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range rest { // vol-38
		if err := RemoveTree(ctx, m.cfg.Mounter, filepath.Join(pod.PodDir(), e.Name())); err != nil {
			errs = append(errs, err)
		}
	}
	if err := os.Remove(pod.PodDir()); err != nil && !errors.Is(err, os.ErrNotExist) && len(errs) == 0 {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// removeLeftover removes the directory of a volume that nobody knows.
func (m *Manager) removeLeftover(ctx context.Context, at Place) error {
	if !m.cfg.Compat.KeepLeftovers && !at.Block && slices.Contains(ownData, at.Plugin) {
		return RemoveTree(ctx, m.cfg.Mounter, at.Dir())
	}
	return removeEmpty(at.Dir())
}

// forceClean removes a volume that nobody knows how to tear down (vol-34).
func (m *Manager) forceClean(ctx context.Context, at Place) error {
	if err := unmountBelow(m.cfg.Mounter, at.Dir()); err != nil {
		return err
	}
	return m.removeLeftover(ctx, at)
}

// tidy removes what is left of the directories of a pod whose volumes are gone:
// nothing but empty ones, and the notes of plugins.
func (m *Manager) tidy(ctx context.Context, uid types.UID) {
	if !m.beginSweep(uid) {
		return
	}
	defer m.endSweep(uid)
	pod := Place{RootDir: m.cfg.RootDir, PodUID: uid}
	for _, name := range []string{"volumes", "volumeDevices", "volume-subpaths"} {
		_ = removeEmpty(filepath.Join(pod.PodDir(), name)) // what is not empty is Collect's to judge
	}
	if err := RemoveTree(ctx, m.cfg.Mounter, filepath.Join(pod.PodDir(), "plugins")); err != nil {
		m.log.Debug("what plugins noted of a pod is left", "uid", uid, "err", err)
	}
	_ = os.Remove(pod.PodDir()) // unless somebody else has something in it
}

// maxLeftovers bounds a directory that may be empty but for directories, in
// entries. One with more is not removed: a pod may have filled it.
const maxLeftovers = 10_000

// removeEmpty removes a tree of directories, and links to devices, in which there
// is nothing else. Nothing at all is no error.
func removeEmpty(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		if info.Mode()&os.ModeSymlink == 0 {
			return fmt.Errorf("%s is not a directory, and nobody knows whose it is", path)
		}
		return os.Remove(path)
	}
	entries, err := untrusted.ReadDir(path, maxLeftovers)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() && e.Type()&os.ModeSymlink == 0 {
			return fmt.Errorf("%s is not empty: %s is in it", path, e.Name())
		}
	}
	for _, e := range entries {
		if err := removeEmpty(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(path)
}
