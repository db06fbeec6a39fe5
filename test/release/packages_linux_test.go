package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// newRoot makes a root directory that has only busybox.
func newRoot(t *testing.T) string {
	t.Helper()
	lab.Need(t, "linux", "root", "busybox")
	root := lab.Directory(t)
	for _, dir := range []string{"bin", "dev", "etc", "proc", "tmp", "var/lib"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/resolv.conf"), nil, 0o644))
	require.NoError(t, syscall.Mknod(filepath.Join(root, "dev/null"), syscall.S_IFCHR|0o666, 1<<8|3))
	busybox, err := exec.LookPath("busybox")
	require.NoError(t, err)
	run(t, "cp", busybox, filepath.Join(root, "bin/busybox"))
	run(t, "chroot", root, "/bin/busybox", "--install", "-s", "/bin")
	return root
}

// runUnit runs a pod with the command of the installed unit.
func runUnit(t *testing.T, root string) {
	t.Helper()
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/kubelet.service"))
	require.NoError(t, err)
	_, command, _ := strings.Cut(string(unit), "\nExecStart=")
	command, _, _ = strings.Cut(command, "\n")
	manifest(t, filepath.Join(root, "etc/kubernetes/manifests"), "host", v1.PullNever, `[sleep, "600"]`)
	require.NoError(t, syscall.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""))
	t.Run("the unit's command", func(t *testing.T) {
		cmd := exec.Command("/bin/sh", "-c", "ip link set lo up && exec "+command)
		cmd.Env = []string{"PATH=/bin", "KUBELET_EXTRA_ARGS=--container-runtime-endpoint=process --cgroups-per-qos=false --enforce-node-allocatable= --stop-pods " + roomy}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
		ended := start(t, cmd)
		waitForPods(t, ended, filepath.Join(root, "var/lib/kubelet"), "web")
	})
}

// dpkg installs the package into a root with the package kubelet, whose place it takes, and removes it.
func TestIntegrationTheDebianPackageRunsAPod(t *testing.T) {
	deb := the(t, "kubeparts-kubelet_*_ARCH.deb")
	root := newRoot(t)
	for _, dir := range []string{"info", "updates", "triggers"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755))
	}
	other := "Package: kubelet\nStatus: install ok installed\nVersion: 1.37.2-1.1\nArchitecture: " + runtime.GOARCH + "\nMaintainer: none\nDescription: another\n"
	require.NoError(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), []byte(other), 0o644))
	dpkg := func(args ...string) string {
		return run(t, "dpkg", append([]string{"--root=" + root, "--log=/dev/null", "--force-not-root,bad-path"}, args...)...)
	}
	assert.Contains(t, dpkg("--install", deb), "will remove kubelet in favour of kubeparts-kubelet")
	runUnit(t, root)
	dpkg("--remove", "kubeparts-kubelet")
	assert.NoFileExists(t, filepath.Join(root, "usr/bin/kubelet"))
	assert.FileExists(t, filepath.Join(root, "etc/kubernetes/kubelet.yaml"), "a configuration remains until the package is purged")
}

// otherKubelet is the source of a package kubelet without files.
const otherKubelet = `Name: kubelet
Version: 1.37.2
Release: 1
Summary: another
License: none
%description
%files
`

// rpm refuses the package beside the package kubelet, and installs it without.
func TestIntegrationTheRPMPackageRunsAPod(t *testing.T) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	pkg := the(t, "kubeparts-kubelet-*."+arch+".rpm")
	root := newRoot(t)
	rpm := func(args ...string) ([]byte, error) {
		return exec.CommandContext(t.Context(), "rpm", append([]string{"--root=" + root}, args...)...).CombinedOutput()
	}
	spec := filepath.Join(t.TempDir(), "kubelet.spec")
	require.NoError(t, os.WriteFile(spec, []byte(otherKubelet), 0o644))
	run(t, "rpmbuild", "--quiet", "-bb", "--define=_topdir "+filepath.Dir(spec), spec)
	others, err := filepath.Glob(filepath.Join(filepath.Dir(spec), "RPMS/*/*.rpm"))
	require.NoError(t, err)
	require.Len(t, others, 1)
	out, err := rpm("--install", others[0])
	require.NoError(t, err, "%s", out)

	out, err = rpm("--install", pkg)
	require.Error(t, err)
	assert.Contains(t, string(out), "kubelet conflicts with kubeparts-kubelet")
	out, err = rpm("--erase", "kubelet")
	require.NoError(t, err, "%s", out)
	out, err = rpm("--install", pkg)
	require.NoError(t, err, "%s", out)
	out, err = rpm("--verify", "kubeparts-kubelet")
	require.NoError(t, err, "%s", out)

	runUnit(t, root)
	configuration := filepath.Join(root, "etc/kubernetes/kubelet.yaml")
	require.NoError(t, os.WriteFile(configuration, []byte("# changed\n"), 0o644))
	out, err = rpm("--erase", "kubeparts-kubelet")
	require.NoError(t, err, "%s", out)
	assert.NoFileExists(t, filepath.Join(root, "usr/bin/kubelet"))
	assert.FileExists(t, configuration+".rpmsave", "a configuration that was changed remains")
}
