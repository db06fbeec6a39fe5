package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

// Reconstruct finds out which volumes an earlier agent has left: from its
// records, and for what has none from the directories (F-45, vol-32). They count
// as uncertain: they are set up again when their pods are synced, and torn down
// when these are unmounted or, if nobody knows them, by [Manager.Collect]. Run
// begins with it.
func (m *Manager) Reconstruct() {
	m.finding.Do(func() {
		defer close(m.found)
		m.reconstructDevices()
		entries, err := os.ReadDir(filepath.Join(m.cfg.RootDir, "pods"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			m.log.Error("the directories of pods can't be read", "err", err)
		}
		for _, e := range entries {
			if e.IsDir() {
				m.reconstructPod(types.UID(e.Name()))
			}
		}
	})
}

// reconstructDevices reads the records of what is staged.
func (m *Manager) reconstructDevices() {
	records, errs := readRecords(m.devicesDir())
	for _, err := range errs {
		m.log.Warn("a record of a staged volume can't be read", "err", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		p := m.cfg.plugin(r.Plugin)
		if _, ok := p.(Stager); !ok || r.Device == "" || !p.CanSupport(r.Spec) {
			m.log.Warn("a volume is staged by a plugin that is not here; it is left alone", "volume", r.Device, "plugin", r.Plugin)
			continue
		}
		d := m.world.addDevice(r.Device, p, r.Spec)
		d.state, d.inherited, d.seLabel = Uncertain, true, r.SELinuxLabel
		m.markDeviceLocked(d)
	}
}

func (m *Manager) reconstructPod(uid types.UID) {
	podDir := Place{RootDir: m.cfg.RootDir, PodUID: uid}.PodDir()
	records, errs := readRecords(recordsDir(podDir))
	for _, err := range errs {
		m.log.Warn("a record of a volume can't be read; its plugin is asked", "uid", uid, "err", err)
	}
	known := map[Place]bool{}
	for _, r := range records {
		at := r.Place
		at.RootDir = m.cfg.RootDir
		if at.PodUID != uid || at.check() != nil {
			m.log.Warn("a record of a volume is in the wrong place; it is passed over", "uid", uid, "volume", at.String())
			continue
		}
		if p := m.cfg.plugin(at.Plugin); p != nil && !p.CanSupport(r.Spec) {
			m.log.Warn("a record of a volume is none of its plugin's; that is asked", "uid", uid, "volume", at.String())
			continue
		}
		known[at] = true
		m.adopt(at, r.Spec, ReconstructInfo{Place: at, Recorded: true})
	}
	for _, at := range placesIn(m.cfg.RootDir, uid) {
		if known[at] {
			continue
		}
		info := ReconstructInfo{Place: at}
		var spec *Spec
		if p := m.cfg.plugin(at.Plugin); p == nil {
			info.Err = fmt.Errorf("volume: no plugin is called %q", at.Plugin)
		} else {
			spec, info.Err = p.ConstructSpec(at)
		}
		m.adopt(at, spec, info)
	}
}

// adopt makes a volume that was found on the disk one that is known. Spec is nil
// if nobody knows what it is.
func (m *Manager) adopt(at Place, spec *Spec, info ReconstructInfo) {
	p := m.cfg.plugin(at.Plugin)
	if p == nil && info.Err == nil {
		info.Err = fmt.Errorf("volume: no plugin is called %q", at.Plugin)
	}
	shared := ""
	if s, ok := p.(Stager); ok && info.Err == nil && spec != nil {
		if name, err := s.SharedName(spec); err != nil {
			info.Err = err
		} else if name != "" {
			shared = UniqueName(at, name, "")
		}
	}
	if info.Err != nil {
		p, spec = nil, nil
		m.log.Debug("nobody knows what a volume on the disk is", "volume", at.String(), "err", info.Err)
	}
	m.mu.Lock()
	v := m.world.add(at)
	v.plugin, v.spec, v.state, v.kept, v.inherited = p, spec, Uncertain, true, true
	if spec != nil {
		v.names[spec.Name()] = spec.ReadOnly
	}
	if shared != "" {
		d := m.world.addDevice(shared, p, spec)
		d.state, d.inherited = Uncertain, true
		m.world.setDevice(v, d)
	}
	m.mu.Unlock()
	if m.cfg.Hooks.Reconstructed != nil {
		m.cfg.Hooks.Reconstructed(info)
	}
}

// placesIn returns the volumes that the directories of a pod show.
func placesIn(root string, uid types.UID) []Place {
	var list []Place
	for kind, block := range map[string]bool{"volumes": false, "volumeDevices": true} {
		dir := filepath.Join(Place{RootDir: root, PodUID: uid}.PodDir(), kind)
		plugins, _ := os.ReadDir(dir)
		for _, p := range plugins {
			volumes, _ := os.ReadDir(filepath.Join(dir, p.Name()))
			for _, v := range volumes {
				list = append(list, Place{RootDir: root, PodUID: uid, Plugin: Unescape(p.Name()), Name: v.Name(), Block: block})
			}
		}
	}
	return list
}
