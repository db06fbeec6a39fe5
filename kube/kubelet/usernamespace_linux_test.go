package kubelet_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/kube/node"
)

// insideVariable is set in a test process in a user namespace: the directory for its files.
const insideVariable = "KUBEPARTS_USER_NAMESPACE"

// inUserNamespace runs the test in a new user namespace, and returns the directory for its
// files there. Outside it returns "". change changes the attributes of the process.
func inUserNamespace(t *testing.T, change ...func(*syscall.SysProcAttr)) string {
	t.Helper()
	if dir := os.Getenv(insideVariable); dir != "" {
		return dir
	}
	u := lab.NewUserNamespace(t)
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run=^"+t.Name()+"$") // whose directory the user may not be able to read
	cmd.SysProcAttr = u.Attributes(syscall.CLONE_NEWNS)
	for _, f := range change {
		f(cmd.SysProcAttr)
	}
	dir := u.Directory(t)
	cmd.Env = append(os.Environ(), insideVariable+"="+dir, "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return ""
}

// A lines is a log that several goroutines write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A kubelet of an unprivileged user runs pods of a cluster. What only root of the machine may
// do is logged.
func TestAKubeletInAUserNamespace(t *testing.T) { // cm-29, oom-1
	dir := inUserNamespace(t)
	if dir == "" {
		return
	}
	require.Zero(t, os.Geteuid())
	api := new(apitest.Server)
	m := newMember(t, api, "n")
	out := new(lines)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(out)
		}
	})
	m.cfg.Logger = slog.New(slog.NewTextHandler(out, nil))
	m.cfg.RootDir, m.cfg.Host.Manage = filepath.Join(dir, "root"), true
	m.cfg.Runtime.Processes = false
	m.cfg.Configuration.PodLogsDir, m.cfg.Configuration.CgroupRoot = filepath.Join(dir, "logs"), "/kubeparts-user-namespace"

	strict := m.cfg
	strict.Configuration = strict.Configuration.DeepCopy()
	strict.Configuration.FeatureGates = map[string]bool{"KubeletInUserNamespace": false}
	_, err := kubelet.Open(t.Context(), strict)
	require.ErrorContains(t, err, "the process is in a user namespace; the feature gate KubeletInUserNamespace ignores this error")

	protecting := m.cfg
	protecting.Configuration = protecting.Configuration.DeepCopy()
	protecting.Configuration.ProtectKernelDefaults = true
	differ := cm.CheckTunables(os.DirFS("/"), cm.Tunables(), true, nil) != nil
	if differ {
		_, err = kubelet.Open(t.Context(), protecting)
		require.ErrorContains(t, err, "invalid kernel flag", "the gate does not concern it")
		assert.Contains(t, out.String(), "OOM score not set")
	}

	m.start(t)
	require.Eventually(t, func() bool { return nodeReady(api, "n") }, 90*time.Second, 10*time.Millisecond)
	api.Put(bound("web", "n"))
	require.Eventually(t, func() bool { p := api.Pod("default", "web"); return p != nil && p.Status.Phase == v1.PodRunning }, 90*time.Second, 10*time.Millisecond)
	node := api.Get("nodes", "", "n").(*v1.Node)
	assert.Equal(t, new(true), node.Status.NodeInfo.RunningInUserNamespace)
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady {
			assert.Contains(t, c.Message, "pods have no cgroups; limits are not enforced", "ns-11")
		}
	}
	if differ {
		assert.Contains(t, out.String(), "Kernel parameters not set")
	}
	assert.Contains(t, out.String(), "Failed to create cgroups of pods in a user namespace")
	assert.NotContains(t, out.String(), "Failed to share the root directory")
	m.stop()
	require.NoError(t, <-m.stopped)
}

// The machine of a rootless node may have the cgroups of another one, with processes in
// them. The node's start failed, or it failed for ever to remove these.
func TestARootlessNodeOnAMachineWithCgroupsOfPods(t *testing.T) {
	const variable = "KUBEPARTS_CGROUP_ROOT"
	if os.Getenv(insideVariable) == "" {
		if os.Geteuid() != 0 {
			t.Skip("root creates the cgroups")
		}
		tree, err := host.New(host.Config{})
		require.NoError(t, err)
		root := cgroups.Name{fmt.Sprintf("kubeparts-rootless-%d", os.Getpid())}
		t.Cleanup(func() { assert.NoError(t, tree.Remove(t.Context(), root)) })
		for _, class := range []string{"burstable", "besteffort"} {
			if err := tree.Apply(t.Context(), root.Child("kubepods", class), cgroups.Resources{}); err != nil {
				t.Skip("cgroups cannot be created: ", err)
			}
		}
		theirs := root.Child("kubepods", "besteffort", "podtheirs-1")
		cmd := sleeping(t, tree, theirs)
		t.Setenv(variable, root.String())
		inUserNamespace(t)
		pids, err := tree.Processes(theirs)
		require.NoError(t, err)
		assert.Equal(t, []int{cmd.Process.Pid}, pids)
		return
	}
	dir := inUserNamespace(t)
	api := new(apitest.Server)
	m := newMember(t, api, "n")
	out := new(lines)
	m.cfg.Logger = slog.New(slog.NewTextHandler(out, nil))
	m.cfg.RootDir, m.cfg.Runtime.Processes = filepath.Join(dir, "root"), false
	m.cfg.Configuration.PodLogsDir, m.cfg.Configuration.CgroupRoot = filepath.Join(dir, "logs"), os.Getenv(variable)
	m.start(t)
	api.Put(bound("web", "n"))
	require.Eventually(t, func() bool { p := api.Pod("default", "web"); return p != nil && p.Status.Phase == v1.PodRunning }, 90*time.Second, 10*time.Millisecond)
	api.Remove("pods", "default", "web")
	require.Eventually(t, func() bool { return len(m.runtime.Containers("")) == 0 }, 90*time.Second, 10*time.Millisecond)
	m.stop()
	require.NoError(t, <-m.stopped)
	assert.Contains(t, out.String(), "Failed to create cgroups of pods in a user namespace")
	assert.NotContains(t, out.String(), "Failed to collect garbage")
}

// With the gate disabled the node does not report its user namespace.
func TestTheUserNamespaceIsNotReportedWithoutItsGate(t *testing.T) {
	api := new(apitest.Server)
	m := newMember(t, api, "n")
	if inside, err := node.InUserNamespace(os.DirFS("/")); inside || err != nil {
		t.Skip("the kubelet would not start")
	}
	m.cfg.Configuration.FeatureGates = map[string]bool{"KubeletInUserNamespace": false}
	m.start(t)
	require.Eventually(t, func() bool { return nodeReady(api, "n") }, 90*time.Second, 10*time.Millisecond)
	assert.Nil(t, api.Get("nodes", "", "n").(*v1.Node).Status.NodeInfo.RunningInUserNamespace)
	m.stop()
	require.NoError(t, <-m.stopped)
}

// The test of delegated cgroups, on a kernel with version 2 only.
func TestIntegrationOnCgroupV2(t *testing.T) {
	lab.Kernel(t, "github.com/kubeparts/kubeparts/kube/kubelet")
}

// With cgroup v2, a user namespace has the cgroups that are delegated to its user: pods have
// theirs, with their limits.
func TestIntegrationDelegatedCgroupsOfAUserNamespace(t *testing.T) {
	const top = "/sys/fs/cgroup"
	if os.Getenv(insideVariable) == "" && !lab.InsideKernel() {
		t.Skip("for the emulated machine, in which cgroups have version 2")
	}
	dir := inUserNamespace(t, func(attr *syscall.SysProcAttr) {
		delegated := filepath.Join(top, "user")
		require.NoError(t, os.WriteFile(filepath.Join(top, "cgroup.subtree_control"), []byte("+cpu +memory +pids +cpuset +hugetlb"), 0))
		require.NoError(t, os.Mkdir(delegated, 0o755))
		for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
			require.NoError(t, os.Chown(filepath.Join(delegated, name), attr.UidMappings[0].HostID, attr.GidMappings[0].HostID))
		}
		f, err := os.Open(delegated)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		attr.UseCgroupFD, attr.CgroupFD = true, int(f.Fd())
	})
	if dir == "" {
		return
	}
	goruntime.LockOSThread() // the thread is not used for anything else
	require.NoError(t, unix.Unshare(unix.CLONE_NEWCGROUP))
	mounted := filepath.Join(dir, "cgroup") // the kernel refuses to mount a file system on itself, but not to bind it there
	require.NoError(t, os.Mkdir(mounted, 0o755))
	require.NoError(t, unix.Mount("cgroup2", mounted, "cgroup2", 0, ""))
	require.NoError(t, unix.Mount(mounted, top, "", unix.MS_BIND, ""))
	require.NoError(t, os.Mkdir(filepath.Join(top, "agent"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(top, "agent", "cgroup.procs"), []byte("0"), 0)) // only leaves contain processes

	api := new(apitest.Server)
	m := newMember(t, api, "n")
	out := new(lines)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(out)
		}
	})
	m.cfg.Logger = slog.New(slog.NewTextHandler(out, nil))
	m.cfg.RootDir, m.cfg.Host.Manage = filepath.Join(dir, "root"), true
	m.cfg.Runtime.Processes = false
	m.cfg.Configuration.PodLogsDir, m.cfg.Configuration.CgroupRoot = filepath.Join(dir, "logs"), "/"
	m.cfg.Configuration.ResolverConfig = new("") // the emulated machine has no /etc/resolv.conf
	m.start(t)
	require.Eventually(t, func() bool { return nodeReady(api, "n") }, 90*time.Second, 10*time.Millisecond)
	pod := bound("web", "n")
	pod.UID = "11111111-2222-3333-4444-555555555555"
	memory := v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")}
	pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: memory, Limits: memory}
	api.Put(pod)
	require.Eventually(t, func() bool { p := api.Pod("default", "web"); return p != nil && p.Status.Phase == v1.PodRunning }, 90*time.Second, 10*time.Millisecond)
	limits, err := filepath.Glob(filepath.Join(top, "kubepods", "burstable", "pod"+string(pod.UID), "memory.max"))
	require.NoError(t, err)
	require.Len(t, limits, 1, "%s", out)
	text, err := os.ReadFile(limits[0])
	require.NoError(t, err)
	assert.Equal(t, "67108864\n", string(text))
	assert.NotContains(t, out.String(), "Failed to create cgroups of pods")
	assert.Contains(t, out.String(), "Kernel parameters not set")
	m.stop()
	require.NoError(t, <-m.stopped)
}
