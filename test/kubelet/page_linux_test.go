package kubelet

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// listeners returns the TCP addresses at which a process listens, as /proc has them.
func listeners(t *testing.T, pid int) (addrs []string) {
	t.Helper()
	sockets := map[string]bool{}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	for _, link := range links {
		to, _ := os.Readlink(link)
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" && sockets[f[9]] {
				addrs = append(addrs, f[1])
			}
		}
	}
	return addrs
}

// An agent with a configuration file listens on no TCP port unless configured to, and
// shows the pods to its own user only, without possible secrets.
func TestThePageIsServedOnASocket(t *testing.T) {
	if testing.Short() {
		t.Skip("starts agents")
	}
	a := newAgent(t, "process")
	config := filepath.Join(a.dir, "kubelet.yaml")
	require.NoError(t, os.WriteFile(config, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {}\nhealthzPort: 0\n"), 0o600))
	a.listen, a.flags = nil, []string{"--config=" + config}
	a.write("db.yaml", `apiVersion: v1
kind: Pod
metadata:
  name: db
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "secret-annotation"}
spec:
  containers:
  - name: main
    image: none
    command: [sleep, "3600"]
    env: [{name: PASSWORD, value: secret-password}]
`)
	a.start()
	socket := filepath.Join(a.dir, "root", "kubelet.sock")
	require.Equal(t, socket, a.addr)
	info, err := os.Lstat(socket)
	require.NoError(t, err)
	assert.Equal(t, fs.ModeSocket|0o600, info.Mode())
	assert.Empty(t, listeners(t, a.cmd.Process.Pid))
	a.eventually("the pod runs", func() bool { return a.pods()["db"].Status.Phase == v1.PodRunning })
	for _, path := range []string{"/pods", "/explain", "/explain?output=json", "/", "/pod/default/db-node", "/healthz", "/stats/summary"} {
		code, body, err := a.get(path)
		require.NoError(t, err)
		assert.Equal(t, 200, code, path)
		assert.NotContains(t, string(body), "secret-", path)
	}
	_, body, err := a.get("/pods")
	require.NoError(t, err)
	assert.Contains(t, string(body), "PASSWORD")

	a.kill()
	a.start() // the dead agent's socket is replaced
	require.NoError(t, a.interrupt())
	_, err = os.Lstat(socket)
	assert.ErrorIs(t, err, fs.ErrNotExist)

	a.write("up.yaml", manifest("up", containers(container("main", "touch "+filepath.Join(a.dir, "up")))))
	a.launch("--listen=")
	a.eventually("another pod runs", func() bool { _, err := os.Stat(filepath.Join(a.dir, "up")); return err == nil })
	assert.Empty(t, listeners(t, a.cmd.Process.Pid))
	require.NoError(t, a.interrupt())

	a.start("--listen=127.0.0.1:0")
	assert.Len(t, listeners(t, a.cmd.Process.Pid), 1, "at the configured address")
}
