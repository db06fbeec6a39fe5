package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	oci "github.com/opencontainers/cgroups"
)

// agentPart is the cgroup that the agent moves into: cgroup v2 has processes in
// leaves only.
const agentPart = "agent"

// Delegate makes the cgroup that this process is in, and that it was given to
// manage (systemd-run --user --scope -p Delegate=yes), one that pods can be made
// in, and returns its path for [Config].Root. The process is moved into a cgroup
// below, controllers are passed on as far as they can be: which ones there are
// Facts say. Cgroup v2 only (F-61).
func Delegate() (root string, err error) {
	version, at, err := mounts()
	if err != nil {
		return "", err
	}
	if version != 2 {
		return "", fmt.Errorf("host: cgroup v1 subtrees can't be delegated: %w", errors.ErrUnsupported)
	}
	own, err := oci.ParseCgroupFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("host: own cgroup: %w", err)
	}
	root = own[""]
	if filepath.Base(root) == agentPart {
		root = filepath.Dir(root) // as an earlier call left it
	}
	dir := filepath.Join(at[""], root)
	leaf := filepath.Join(dir, agentPart)
	if err := os.Mkdir(leaf, 0o755); err != nil && !os.IsExist(err) {
		return "", fmt.Errorf("host: %s was not delegated to this user: %w", root, err)
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return "", fmt.Errorf("host: move into %s: %w", leaf, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return "", fmt.Errorf("host: controllers of %s: %w", root, err)
	}
	for controller := range strings.FieldsSeq(string(text)) {
		// One that can't be passed on is missing below, which is not fatal.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0)
	}
	return root, nil
}
