package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	oci "github.com/opencontainers/cgroups"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// unified is where cgroup v2 is mounted on a machine that has nothing else.
const unified = "/sys/fs/cgroup"

// hybrid is where it is mounted beside v1, without controllers.
const hybrid = "/sys/fs/cgroup/unified"

// mounts finds the cgroups of the machine: of v1 the mount of each controller,
// "systemd" included; of v2 the one mount by the name "".
func mounts() (version int, at map[string]string, err error) {
	if oci.IsCgroup2UnifiedMode() {
		return 2, map[string]string{"": unified}, nil
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return 0, nil, fmt.Errorf("host: where cgroups are mounted: %w", err)
	}
	at = parseMounts(string(text))
	if len(at) == 0 {
		return 0, nil, errors.New("host: no cgroups are mounted below /sys/fs/cgroup, of neither version")
	}
	return 1, at, nil
}

// parseMounts returns the mounts of cgroup v1 in a mountinfo, by controller. Of
// several the first counts, which is the one below /sys/fs/cgroup.
func parseMounts(mountinfo string) map[string]string {
	at := map[string]string{}
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields, super := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(super) < 3 || super[0] != "cgroup" {
			continue
		}
		for option := range strings.SplitSeq(super[2], ",") {
			switch name, named := strings.CutPrefix(option, "name="); {
			case option == "rw" || option == "ro" || option == "xattr" || option == "noprefix":
				continue
			case named:
				option = name
			case strings.Contains(option, "="):
				continue // release_agent, clone_children
			}
			if at[option] == "" {
				at[option] = fields[4]
			}
		}
	}
	return at
}

// ociName is what the library calls a tree of v1.
func ociName(controller string) string {
	if controller == "systemd" {
		return "name=systemd"
	}
	return controller
}

// facts reads which controllers there are.
func (t *Tree) readFacts(weight cgroups.WeightFormula) error {
	t.facts = cgroups.Facts{Version: t.version, Driver: t.driver, Weight: weight, PageSize: int64(os.Getpagesize())}
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
