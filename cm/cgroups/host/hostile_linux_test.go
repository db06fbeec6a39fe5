package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
)

// elsewhere runs an act of this binary in a separate mount namespace.
func elsewhere(t *testing.T, base cgroups.Name, act string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), asChild+"="+act, asChild+"_BASE="+base[0])
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// An agent whose cgroups are mounted read-only, as in a container, reports that; reads
// still work.
func TestIntegrationReadOnlyCgroups(t *testing.T) {
	needCgroupfs(t)
	tree, base := needRealCgroups(t)
	pod := base.Child("pod1")
	require.NoError(t, tree.Apply(t.Context(), pod, cgroups.Resources{Pids: new(int64(7))}))
	out := elsewhere(t, base, "read-only")
	assert.Contains(t, out, "read: 7 <nil>\n")
	assert.Contains(t, out, "stats: <nil>\n")
	assert.Contains(t, out, "change: read-only true\n")
	assert.Contains(t, out, "make: read-only true\n")
	assert.Contains(t, out, "remove: read-only true\n")
	has, err := tree.Read(pod)
	require.NoError(t, err)
	assert.EqualValues(t, 7, *has.Pids)
}

// readOnly runs in the agent process of that test.
func readOnly() error {
	mounts, err := filepath.Glob("/sys/fs/cgroup/*")
	if err != nil {
		return err
	}
	for _, at := range append(mounts, "/sys/fs/cgroup") {
		// A directory that is not a mount point belongs to the mount above.
		_ = syscall.Mount("", at, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
	}
	ctx, pod := context.Background(), cgroups.Name{os.Getenv(asChild + "_BASE"), "pod1"}
	tree, err := host.New(host.Config{})
	if err != nil {
		return err
	}
	has, err := tree.Read(pod)
	if err != nil {
		return err
	}
	fmt.Println("read:", *has.Pids, err)
	_, err = tree.Stats(pod)
	fmt.Println("stats:", err)
	for what, err := range map[string]error{
		"change": tree.Apply(ctx, pod, cgroups.Resources{Pids: new(int64(9))}),
		"make":   tree.Apply(ctx, pod.Parent().Child("pod2"), cgroups.Resources{Pids: new(int64(9))}),
		"remove": tree.Remove(ctx, pod),
	} {
		fmt.Println(what+": read-only", errors.Is(err, cgroups.ErrReadOnly))
		if !errors.Is(err, cgroups.ErrReadOnly) {
			fmt.Println(err)
		}
	}
	return nil
}

// A machine without the pids controller: pods get the other limits, and the missing
// controller is reported.
func TestIntegrationAMachineWithoutAController(t *testing.T) {
	tree, base := needRealCgroups(t)
	if tree.Facts().Version != 1 {
		t.Skip("on cgroup v2 a delegated subtree covers this")
	}
	require.NoError(t, tree.Apply(t.Context(), base, cgroups.Resources{}))
	out := elsewhere(t, base, "without")
	assert.Contains(t, out, "missing pids true\n")
	assert.Contains(t, out, "made: <nil>\n")
	assert.Contains(t, out, "memory 67108864, pids false <nil>\n")
	assert.Contains(t, out, "stats: memory true, pids false <nil>\n")
	assert.Contains(t, out, "removed: <nil>\n")
}

// without runs in the agent process of that test.
func without() error {
	if err := syscall.Unmount("/sys/fs/cgroup/pids", syscall.MNT_DETACH); err != nil {
		return err
	}
	ctx, pod := context.Background(), cgroups.Name{os.Getenv(asChild + "_BASE"), "pod1"}
	tree, err := host.New(host.Config{})
	if err != nil {
		return err
	}
	fmt.Println("missing pids", slices.Contains(tree.Facts().Missing(), "pids"))
	fmt.Println("made:", tree.Apply(ctx, pod, cgroups.Resources{Memory: new(int64(64 << 20)), Pids: new(int64(5))}))
	r, err := tree.Read(pod)
	if r.Memory == nil {
		return fmt.Errorf("no memory: %w", err)
	}
	fmt.Printf("memory %d, pids %v %v\n", *r.Memory, r.Pids != nil, err)
	s, err := tree.Stats(pod)
	fmt.Printf("stats: memory %v, pids %v %v\n", s.Memory != nil, s.Pids != nil, err)
	fmt.Println("removed:", tree.Remove(ctx, pod))
	return nil
}

// A container's cgroup is found by its ID alone, and only in its own pod.
func TestIntegrationAContainerIsFoundByItsID(t *testing.T) {
	needCgroupfs(t)
	tree, base := needRealCgroups(t)
	pod := base.Child("pod1")
	require.NoError(t, tree.Apply(t.Context(), pod.Child("c1"), cgroups.Resources{}))
	s, err := tree.ContainerStats(pod, "c1")
	require.NoError(t, err)
	assert.NotNil(t, s.Memory)
	if text, err := os.ReadFile("/proc/pressure/memory"); err == nil && tree.Facts().Version == 2 && strings.HasPrefix(string(text), "some") {
		assert.NotNil(t, s.Memory.PSI, "st-14: of a container")
		assert.NotNil(t, s.CPU.PSI)
	}
	for _, id := range []string{"c2", "", "../pod1/c1", "1"} {
		_, err := tree.ContainerStats(pod, id)
		assert.ErrorIs(t, err, os.ErrNotExist, "%q", id)
	}
	_, err = tree.ContainerStats(cgroups.Name{"a_b"}, "c1")
	assert.ErrorIs(t, err, cgroups.ErrBadName)
}
