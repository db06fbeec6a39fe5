package kubelet_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/kubelet"
)

// sharing returns a member without plain processes, in the cgroups below root if it may
// create any.
func sharing(t *testing.T, api *apitest.Server, name string, root cgroups.Name) *member {
	t.Helper()
	m := newMember(t, api, name)
	m.cfg.Runtime.Processes = false
	m.cfg.Configuration.PodLogsDir, m.cfg.Configuration.CgroupRoot = filepath.Join(t.TempDir(), "logs"), root.String()
	m.cfg.Configuration.FailSwapOn = new(false)
	t.Cleanup(func() { _ = syscall.Unmount(m.cfg.RootDir, syscall.MNT_DETACH) }) // the mount of volume.Share
	return m
}

// A sleeping process stands for the container of another kubelet.
func sleeping(t *testing.T, tree *host.Tree, name cgroups.Name) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "3600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.NoError(t, tree.Move(t.Context(), name, cmd.Process.Pid))
	return cmd
}

// Started beside another kubelet on a runtime of its own, a node killed all pods of that
// kubelet within two seconds, without a line in its log.
func TestANodeKillsNoPodOfAnotherKubeletBelowItsCgroupRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("cgroups are created by root only")
	}
	tree, err := host.New(host.Config{})
	require.NoError(t, err)
	root := cgroups.Name{fmt.Sprintf("kubeparts-foreign-%d", os.Getpid())}
	t.Cleanup(func() { assert.NoError(t, tree.Remove(t.Context(), root)) })
	if err := tree.Apply(t.Context(), root.Child("kubepods", "besteffort"), cgroups.Resources{}); err != nil {
		t.Skip("cgroups cannot be created: ", err)
	}
	theirs := map[string]*exec.Cmd{}
	for _, path := range []string{"kubepods/poda-1", "kubepods/burstable/podb-1", "kubepods/besteffort/podc-1"} {
		theirs[path] = sleeping(t, tree, root.Child(cgroups.ParsePath(path, cgroups.Cgroupfs)...).Child("c"))
	}
	api := new(apitest.Server)
	m := sharing(t, api, "n", root)
	_, err = kubelet.Open(t.Context(), m.cfg)
	require.ErrorIs(t, err, cm.ErrForeign)
	for _, remedy := range []string{"3 pods below " + root.Child("kubepods").String(), "stop it", "--root-dir", "--cgroup-root", "--ignore-foreign-pods"} {
		assert.ErrorContains(t, err, remedy)
	}

	// If they are to be ignored, the node runs its own pods and removes nothing else.
	out := new(lines)
	m.cfg.Logger = slog.New(slog.NewTextHandler(out, nil))
	m.cfg.Host.IgnoreForeignPods = true
	m.start(t)
	pod := bound("web", "n")
	pod.UID = "own-1"
	api.Put(pod)
	own := root.Child("kubepods", "besteffort", "podown-1")
	require.Eventually(t, func() bool { p := api.Pod("default", "web"); return p != nil && p.Status.Phase == v1.PodRunning }, 90*time.Second, 10*time.Millisecond)
	assert.True(t, tree.Exists(own))
	left := sleeping(t, tree, own.Child("c")) // a process that outlives the container
	api.Remove("pods", "default", "web")
	require.Eventually(t, func() bool { return !tree.Exists(own) }, 90*time.Second, 10*time.Millisecond, "the cgroup of its own pod is removed\n%s", out)
	assert.Contains(t, out.String(), `msg="Killing a leftover process of a removed cgroup"`)
	require.Error(t, left.Wait())
	for path, cmd := range theirs {
		pids, err := tree.Processes(root.Child(cgroups.ParsePath(path, cgroups.Cgroupfs)...))
		require.NoError(t, err)
		assert.Equal(t, []int{cmd.Process.Pid}, pids, path)
	}
	m.stop()
	require.NoError(t, <-m.stopped)
}

// A node on the runtime of another one, with another root directory, terminated the pods of
// the other as orphans.
func TestANodeTerminatesNoPodOfAnotherNodeOnItsRuntime(t *testing.T) {
	api := new(apitest.Server)
	first := sharing(t, api, "first", nil)
	first.cfg.Configuration.CgroupsPerQOS, first.cfg.Configuration.EnforceNodeAllocatable = new(false), []string{"none"}
	first.start(t)
	api.Put(bound("web", "first"))
	running := func() bool { p := api.Pod("default", "web"); return p != nil && p.Status.Phase == v1.PodRunning }
	require.Eventually(t, running, 90*time.Second, 10*time.Millisecond)

	second := sharing(t, api, "second", nil)
	second.cfg.Configuration.CgroupsPerQOS, second.cfg.Configuration.EnforceNodeAllocatable = new(false), []string{"none"}
	second.cfg.Runtime, second.runtime = first.cfg.Runtime, first.runtime
	_, err := kubelet.Open(t.Context(), second.cfg)
	for _, remedy := range []string{"the runtime runs 1 pods that this node does not know, such as default/web", "stop it", "--root-dir", "containerRuntimeEndpoint", "--ignore-foreign-pods"} {
		require.ErrorContains(t, err, remedy)
	}
	second.cfg.Host.IgnoreForeignPods = true
	second.start(t)
	require.Eventually(t, func() bool { return nodeReady(api, "second") }, 90*time.Second, 10*time.Millisecond)
	api.Put(bound("mine", "second"))
	require.Eventually(t, func() bool { p := api.Pod("default", "mine"); return p != nil && p.Status.Phase == v1.PodRunning }, 90*time.Second, 10*time.Millisecond)
	api.Remove("pods", "default", "mine")
	require.Eventually(t, func() bool { return len(first.runtime.Containers("")) == 1 }, 90*time.Second, 10*time.Millisecond, "its own pod is removed")
	assert.True(t, running())
	for _, m := range []*member{second, first} {
		m.stop()
		require.NoError(t, <-m.stopped)
	}
	assert.Equal(t, "running", strings.ToLower(first.runtime.Containers("")[0].State.String()))

	// The first one is started again: its pod is its own.
	first.start(t)
	require.Eventually(t, func() bool { return nodeReady(api, "first") }, 90*time.Second, 10*time.Millisecond)
	first.stop()
	require.NoError(t, <-first.stopped)
}
