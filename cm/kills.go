package cm

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// OOMKills returns the number of OOM-killed processes of each pod since its cgroup was
// created, by the cgroup's path. It is for oom.Config.Cgroups, if the kernel log cannot
// be read (rule oom-1). Kills in containers are missing with cgroup v1, which counts each
// cgroup separately, and with systemd, whose scopes are not included.
//
// The error joins the cgroups that cannot be read; the result contains the others.
func (m *Manager) OOMKills() (map[string]uint64, error) {
	pods, err := m.Pods()
	if err != nil {
		return nil, err
	}
	out := map[string]uint64{}
	var errs []error
	for _, names := range pods {
		for _, name := range names {
			kills, err := m.killsIn(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // it went meanwhile
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("cm: count kills in %s: %w", name, err))
				continue
			}
			out[name.Path(m.cfg.Driver)] = kills
		}
	}
	return out, errors.Join(errs...)
}

// killsIn counts those of a cgroup with all right below it.
func (m *Manager) killsIn(name cgroups.Name) (uint64, error) {
	s, err := m.cfg.Tree.Stats(name)
	if err != nil || s.Memory == nil {
		return 0, err
	}
	if m.facts.Version == 2 {
		return s.Memory.OOMKills, nil // of all below
	}
	kills := s.Memory.OOMKills
	children, err := m.cfg.Tree.Children(name)
	if err != nil {
		return kills, err
	}
	for _, child := range children {
		if s, err := m.cfg.Tree.Stats(child); err == nil && s.Memory != nil {
			kills += s.Memory.OOMKills
		}
	}
	return kills, nil
}
