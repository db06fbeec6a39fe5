package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

// reconstruct adds the volumes that an earlier agent mounted to the actual state, from their checkpoints
// or else from the directories. Their state is uncertain: they are set up again when their pods are
// synced, and torn down by Unmount or Collect.
func (m *Manager) reconstruct() {
	m.reconstructOnce.Do(func() {
		defer close(m.reconstructed)
		m.reconstructDevices()
		entries, err := os.ReadDir(filepath.Join(m.cfg.RootDir, "pods"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			m.log.Error("Failed to list pod directories; their volumes are unknown", "err", err)
		}
		for _, e := range entries {
			if e.IsDir() {
				m.reconstructPod(types.UID(e.Name()))
			}
		}
	})
}

// reconstructDevices reads the checkpoints of staged devices.
func (m *Manager) reconstructDevices() {
	records, errs := readCheckpoints(m.deviceCheckpointsDir())
	for _, err := range errs {
		m.log.Warn("Failed to read the checkpoint of a staged volume; it is not unstaged", "err", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		p := m.cfg.plugin(r.Plugin)
		if _, ok := p.(Stager); !ok || r.Device == "" || !p.CanSupport(r.Spec) {
			m.log.Warn("Staged volume has no plugin; it is not unstaged", "volumeName", r.Device, "plugin", r.Plugin)
			continue
		}
		d := m.world.addDevice(r.Device, p, r.Spec)
		d.state, d.inherited, d.seLabel = uncertain, true, r.SELinuxLabel
		m.markDeviceLocked(d)
	}
}

func (m *Manager) reconstructPod(uid types.UID) {
	podDir := Place{RootDir: m.cfg.RootDir, PodUID: uid}.PodDir()
	records, errs := readCheckpoints(podDir)
	for _, err := range errs {
		m.log.Warn("Failed to read the checkpoint of a volume; constructing its spec from disk", "podUID", uid, "err", err)
	}
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
		m.addReconstructed(at, r.Spec, ReconstructInfo{Place: at, Recorded: true})
	}
	for _, at := range placesIn(m.cfg.RootDir, uid) {
		if checkpointed[at] {
			continue
		}
		info := ReconstructInfo{Place: at}
		var spec *Spec
		if p := m.cfg.plugin(at.Plugin); p == nil {
			info.Err = fmt.Errorf("volume: no plugin %q", at.Plugin)
		} else {
			spec, info.Err = p.ConstructSpec(at)
		}
		m.addReconstructed(at, spec, info)
	}
}

// addReconstructed adds a volume on disk to the actual state. spec is nil if it is unknown.
func (m *Manager) addReconstructed(at Place, spec *Spec, info ReconstructInfo) {
	p := m.cfg.plugin(at.Plugin)
	if p == nil && info.Err == nil {
		info.Err = fmt.Errorf("volume: no plugin %q", at.Plugin)
	}
	shared := ""
	if s, ok := p.(Stager); ok && info.Err == nil && spec != nil {
		if name, err := s.SharedName(spec); err != nil {
			info.Err = err
		} else if name != "" {
			shared = uniqueName(at, name, "")
		}
	}
	if info.Err != nil {
		p, spec = nil, nil
		m.log.Debug("Failed to reconstruct volume, it is removed with its pod", "volumeName", at.String(), "err", info.Err)
	}
	m.mu.Lock()
	v := m.world.add(at)
	v.plugin, v.spec, v.state, v.unclaimed, v.inherited = p, spec, uncertain, true, true
	if spec != nil {
		v.names[spec.Name()] = spec.ReadOnly
	}
	if shared != "" {
		d := m.world.addDevice(shared, p, spec)
		d.state, d.inherited = uncertain, true
		m.world.setDevice(v, d)
	}
	m.mu.Unlock()
	if m.cfg.Hooks.Reconstructed != nil {
		m.cfg.Hooks.Reconstructed(info)
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
