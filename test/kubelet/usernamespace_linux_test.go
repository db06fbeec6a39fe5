package kubelet

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// rootless prepares namespaces for the kubelet, its arguments. As process 1 the shell reaps the
// processes of pods. It interrupts the kubelet on SIGTERM, because it cannot trap SIGINT if that is
// ignored when it starts, as in background jobs.
const rootless = `set -e
mount -t proc proc /proc
ip link set lo up
trap 'kill -INT $kubelet' TERM
"$0" "$@" &
kubelet=$!
set +e
wait $kubelet
wait $kubelet
exit $?`

// inNamespaces makes the agent a node of an unprivileged user, in a new user namespace that owns
// its mount, process and network namespaces.
func (a *agent) inNamespaces(u lab.UserNamespace) {
	kubelet := filepath.Join(a.dir, "kubelet")
	data, err := os.ReadFile(program(a.t)) // in a directory that the user may not be able to read
	require.NoError(a.t, err)
	require.NoError(a.t, os.WriteFile(kubelet, data, 0o755))
	a.stopSignal = syscall.SIGTERM
	a.command = func(args ...string) *exec.Cmd {
		cmd := exec.Command("sh", append([]string{"-c", rootless, kubelet}, args...)...)
		cmd.SysProcAttr = u.Attributes(syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET)
		cmd.Dir = a.dir
		return cmd
	}
}

// userZero is a pod with what user 0 of a user namespace may do: mount a volume in memory, and use
// its own user. Mounts of other nodes on the machine are in its mount namespace too.
const userZero = `apiVersion: v1
kind: Pod
metadata: {name: zero}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {runAsUser: 0}
  volumes:
  - name: memory
    emptyDir: {medium: Memory, sizeLimit: 1Mi}
  containers:
  - name: main
    image: plain
    command: [sh, -c, "id -u; cat /proc/self/uid_map; grep -c $POD_UID'.*empty-dir/memory.* tmpfs ' /proc/self/mountinfo; exec sleep 1000"]
    env: [{name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}]
    volumeMounts: [{name: memory, mountPath: /memory}]
`

func TestANodeOfAnUnprivilegedUser(t *testing.T) {
	u := lab.NewUserNamespace(t)
	a := newAgentIn(t, "process", u.Directory(t))
	a.inNamespaces(u)
	a.listen = []string{"--listen=unix://" + filepath.Join(a.dir, "page.sock")}
	a.flags = []string{"--v=2"}
	a.write("zero.yaml", userZero)
	a.start()
	a.eventually("the pod runs", func() bool { return a.pods()["zero"].Status.Phase == v1.PodRunning })
	if restricted, err := os.ReadFile("/proc/sys/kernel/dmesg_restrict"); err == nil && strings.TrimSpace(string(restricted)) == "1" {
		assert.Contains(t, a.out.String(), "Kernel log not read, since the process is in a user namespace")
	}
	logs, err := filepath.Glob(filepath.Join(a.logs(), "*", "main", "0.log"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	a.eventually("the pod has written its log", func() bool {
		text, err := os.ReadFile(logs[0])
		return err == nil && strings.Count(string(text), "\n") == 3
	})
	text, err := os.ReadFile(logs[0])
	require.NoError(t, err)
	lines := parseLog(t, text)
	assert.Equal(t, "0", lines[0].text, "the user")
	mapping := strings.Fields(lines[1].text)
	assert.Equal(t, []string{"0", "1"}, []string{mapping[0], mapping[2]}, "one ID is mapped")
	assert.Equal(t, "1", lines[2].text, "the volume is mounted")
	require.NoError(t, a.interrupt())
}
