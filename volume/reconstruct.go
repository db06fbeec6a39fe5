package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
)

// A foundVolume is a volume on disk that an earlier agent mounted.
type foundVolume struct {
	place    Place
	recorded *Spec // of its checkpoint; nil if there is none
}

// A reconstruction is what plugins return about a foundVolume. If err is nil, plugin and spec are set.
type reconstruction struct {
	foundVolume
	err    error
	plugin Plugin
	spec   *Spec
	shared string // unique name of its device; "": it is not staged
}

// reconstruct adds the volumes that an earlier agent mounted to the actual state, from their checkpoints
// or else from the directories. Their state is uncertain: they are set up again when their pods are
// synced, and torn down by Unmount or Collect.
func (m *Manager) reconstruct(ctx context.Context) {
	m.reconstructOnce.Do(func() {
		defer close(m.reconstructed)
		m.reconstructDevices()
		entries, err := os.ReadDir(filepath.Join(m.cfg.RootDir, "pods"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			m.log.Error("Failed to list pod directories; their volumes are unknown", "err", err)
		}
		var found []foundVolume
		for _, e := range entries {
			if e.IsDir() {
				found = append(found, m.findVolumes(types.UID(e.Name()))...)
			}
		}
		for _, r := range m.reconstructAll(ctx, found) {
			m.addReconstructed(r)
		}
	})
}

// reconstructDevices reads the checkpoints of staged devices.
func (m *Manager) reconstructDevices() {
	records, errs := readCheckpoints(m.deviceCheckpointsDir())
	for _, err := range errs {
		m.log.Warn("Failed to read the checkpoint of a staged volume; it is not unstaged", "err", err)
	}
	for _, r := range records {
		p := m.cfg.plugin(r.Plugin)
		if _, ok := compose.As[Stager](p); !ok || r.Device == "" || !p.CanSupport(r.Spec) {
			m.log.Warn("Staged volume has no plugin; it is not unstaged", "volumeName", r.Device, "plugin", r.Plugin)
			continue
		}
		m.mu.Lock()
		d := m.world.addDevice(r.Device, p, r.Spec)
		d.state, d.seLabel = uncertain, r.SELinuxLabel
		m.markDeviceLocked(d)
		m.mu.Unlock()
	}
}

// findVolumes returns the volumes of a pod that have a checkpoint or a directory.
func (m *Manager) findVolumes(uid types.UID) []foundVolume {
	podDir := Place{RootDir: m.cfg.RootDir, PodUID: uid}.PodDir()
	records, errs := readCheckpoints(podDir)
	for _, err := range errs {
		m.log.Warn("Failed to read the checkpoint of a volume; constructing its spec from disk", "podUID", uid, "err", err)
	}
	var found []foundVolume
	checkpointed := map[Place]bool{}
	for _, r := range records {
		at := r.Place
		at.RootDir = m.cfg.RootDir
		if at.PodUID != uid || at.check() != nil {
			m.log.Warn("Checkpoint belongs to another pod; ignored", "podUID", uid, "volumeName", at.String())
			continue
		}
		if p := m.cfg.plugin(at.Plugin); p != nil && !p.CanSupport(r.Spec) {
			m.log.Warn("Checkpoint is not supported by its plugin; constructing the spec from disk", "podUID", uid, "volumeName", at.String())
			continue
		}
		checkpointed[at] = true
		found = append(found, foundVolume{at, r.Spec})
	}
	for _, at := range placesIn(m.cfg.RootDir, uid) {
		if !checkpointed[at] {
			found = append(found, foundVolume{place: at})
		}
	}
	return found
}

// reconstructAll calls the plugins of the volumes concurrently. A plugin that reads a file system which
// does not answer delays it for callWait; its volume then is one whose spec is unknown.
func (m *Manager) reconstructAll(ctx context.Context, found []foundVolume) []reconstruction {
	by := time.Now().Add(callWait)
	results, done := make([]reconstruction, len(found)), make([]chan struct{}, len(found))
	for i, v := range found {
		done[i] = make(chan struct{})
		go func() {
			defer close(done[i])
			results[i] = m.cfg.reconstruct(v)
		}()
	}
	list := make([]reconstruction, len(found))
	for i, v := range found {
		if await(ctx, done[i], time.Until(by)) {
			list[i] = results[i]
			continue
		}
		list[i] = reconstruction{foundVolume: v, err: fmt.Errorf("volume: reconstruct %s: %w", v.place, errNoAnswer)}
	}
	return list
}

// reconstruct reads what the plugin of a volume knows about it.
func (c *Config) reconstruct(v foundVolume) reconstruction {
	r := reconstruction{foundVolume: v, plugin: c.plugin(v.place.Plugin), spec: v.recorded}
	switch {
	case r.plugin == nil:
		r.err = fmt.Errorf("volume: no plugin %q", v.place.Plugin)
		return r
	case r.spec == nil:
		if r.spec, r.err = r.plugin.ConstructSpec(v.place); r.err != nil {
			return r
		}
	}
	if s, ok := compose.As[Stager](r.plugin); ok {
		name := ""
		if name, r.err = s.SharedName(r.spec); name != "" {
			r.shared = uniqueName(v.place, name, "")
		}
	}
	return r
}

// addReconstructed adds a volume on disk to the actual state.
func (m *Manager) addReconstructed(r reconstruction) {
	if r.err != nil {
		r.plugin, r.spec, r.shared = nil, nil, ""
		m.log.Debug("Failed to reconstruct volume, it is removed with its pod", "volumeName", r.place.String(), "err", r.err)
	}
	m.mu.Lock()
	v := m.world.add(r.place)
	v.plugin, v.spec, v.state, v.unclaimed = r.plugin, r.spec, uncertain, true
	if v.spec != nil {
		v.names[v.spec.Name()] = v.spec.ReadOnly
	}
	if r.shared != "" {
		d := m.world.addDevice(r.shared, r.plugin, r.spec)
		d.state = uncertain
		m.world.setDevice(v, d)
	}
	m.mu.Unlock()
	if m.cfg.Hooks.Reconstructed != nil {
		m.cfg.Hooks.Reconstructed(r.place, r.recorded != nil, r.err)
	}
}

// placesIn returns the volumes that have a directory in the pod's directory.
func placesIn(root string, uid types.UID) []Place {
	var list []Place
	for kind, block := range map[string]bool{"volumes": false, "volumeDevices": true} {
		dir := filepath.Join(Place{RootDir: root, PodUID: uid}.PodDir(), kind)
		plugins, _ := os.ReadDir(dir)
		for _, p := range plugins {
			volumes, _ := os.ReadDir(filepath.Join(dir, p.Name()))
			for _, v := range volumes {
				list = append(list, Place{RootDir: root, PodUID: uid, Plugin: unescape(p.Name()), Name: v.Name(), Block: block})
			}
		}
	}
	return list
}
