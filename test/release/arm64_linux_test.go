package release

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// emulated runs a command in a user namespace where programs for arm64 are emulated. Before Linux 6.7 it
// would be the whole machine, and the mount is refused.
const emulated = `set -e
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf %s ':arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:F' \
	>/proc/sys/fs/binfmt_misc/register
exec "$@"`

// The archives for arm64 run a pod in emulation: its container is one of fakecri, because the emulator lacks
// a call of the kernel that containers as processes require (PR_SET_CHILD_SUBREAPER).
func TestTheArchivesForARM64RunAPod(t *testing.T) {
	if runtime.GOARCH == "arm64" || len(files(t, "*_linux_arm64.tar.gz")) == 0 {
		t.Skip("there are no archives for arm64, or they are tested natively")
	}
	dir := t.TempDir()
	arm64 := func(program string, args ...string) *exec.Cmd {
		run(t, "tar", "-xzf", the(t, program+"_*_linux_arm64.tar.gz"), "-C", dir, "--strip-components=1")
		path := filepath.Join(dir, program)
		file, err := elf.Open(path)
		require.NoError(t, err)
		assert.Equal(t, elf.EM_AARCH64, file.Machine)
		require.NoError(t, file.Close())
		cmd := exec.Command("/bin/sh", append([]string{"-c", emulated, "sh", path}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{Size: 1}}, GidMappings: []syscall.SysProcIDMap{{Size: 1}},
		}
		return cmd
	}
	root, endpoint := filepath.Join(dir, "root"), "unix://"+filepath.Join(dir, "cri.sock")
	start(t, arm64("fakecri", "--listen="+endpoint))
	ended := start(t, arm64("kubelet", "--container-runtime-endpoint="+endpoint, roomy, "--root-dir="+root,
		"--pod-logs-dir="+filepath.Join(dir, "logs"), "--cgroups-per-qos=false", "--enforce-node-allocatable=", "--stop-pods",
		"--pod-manifest-path="+manifest(t, filepath.Join(dir, "manifests"), "example.test/web", v1.PullIfNotPresent, `[web]`)))
	waitForPods(t, ended, root, "web")
}
