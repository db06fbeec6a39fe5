package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	oci "github.com/opencontainers/cgroups"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// unified is the mount of cgroup v2 on a machine without cgroup v1.
const unified = "/sys/fs/cgroup"

// hybrid is the mount of cgroup v2, without controllers, on a machine with cgroup v1.
const hybrid = "/sys/fs/cgroup/unified"

// mounts returns the cgroup mounts of the machine by controller, including "systemd";
// with v2 the only key is "".
func mounts() (version int, at map[string]string, err error) {
	if oci.IsCgroup2UnifiedMode() {
		return 2, map[string]string{"": unified}, nil
	}
	all, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup"))
	if err != nil {
		return 0, nil, fmt.Errorf("host: where cgroups are mounted: %w", err)
	}
	at = controllerMounts(all)
	if len(at) == 0 {
		return 0, nil, errors.New("host: no cgroups are mounted below /sys/fs/cgroup, of neither version")
	}
	return 1, at, nil
}

// controllerMounts returns the mount point of each controller of cgroup v1. Of several
// mounts the first is used, which is the one below /sys/fs/cgroup.
func controllerMounts(mounts []*mountinfo.Info) map[string]string {
	at := map[string]string{}
	for _, m := range mounts {
		for option := range strings.SplitSeq(m.VFSOptions, ",") {
			switch name, named := strings.CutPrefix(option, "name="); {
			case option == "rw" || option == "ro" || option == "xattr" || option == "noprefix":
				continue
			case named:
				option = name
			case strings.Contains(option, "="):
				continue // release_agent, clone_children
			}
			if at[option] == "" {
				at[option] = m.Mountpoint
			}
		}
	}
	return at
}

// ociName returns the library's name of a hierarchy of cgroup v1.
func ociName(controller string) string {
	if controller == "systemd" {
		return "name=systemd"
	}
	return controller
}

// readFacts reads the available controllers.
func (t *Tree) readFacts() error {
	t.facts = cgroups.Facts{Version: t.version, Driver: t.driver, PageSize: int64(os.Getpagesize())}
	if t.version == 1 {
		for controller := range t.at {
			t.facts.Controllers = append(t.facts.Controllers, controller)
		}
		slices.Sort(t.facts.Controllers)
		return nil
	}
	dir := filepath.Join(t.at[""], t.root)
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("host: controllers of %s: %w", dir, err)
	}
	t.facts.Controllers = strings.Fields(string(text))
	return nil
}
