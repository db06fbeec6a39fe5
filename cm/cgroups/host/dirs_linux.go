package host

import "github.com/kubeparts/kubeparts/cm/cgroups"

// Dirs returns the directories of a cgroup, one per mount, for direct access.
func (t *Tree) Dirs(name cgroups.Name) []string {
	var dirs []string
	seen := map[string]bool{}
	for _, controller := range t.order {
		if dir := t.dir(controller, name); !seen[dir] {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
