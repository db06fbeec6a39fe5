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

// agentPart is the cgroup of the agent itself: with cgroup v2 only leaves contain
// processes.
const agentPart = "agent"

// Delegate prepares the cgroup of this process, which must be delegated to it
// (systemd-run --user --scope -p Delegate=yes), for pods and returns its path for
// [Config].Root. It moves the process into a child cgroup and enables controllers for
// children as far as possible; Facts returns the available ones. Cgroup v2 only.
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
		root = filepath.Dir(root) // moved by an earlier call
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
		// A controller that cannot be enabled is missing in children, which is not fatal.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0)
	}
	return root, nil
}
