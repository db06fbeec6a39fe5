//go:build linux

package kubeadm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/isolate"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// ownDirectories are what kubeadm, containerd and a kubelet write outside of their configured directories. /tmp is that
// of this machine: the files of the test may be in it.
var ownDirectories = []string{
	"/etc/kubernetes", "/etc/cni/net.d", "/var/lib/kubelet", "/var/lib/etcd", "/var/lib/containerd", "/var/lib/cni",
	"/var/log/pods", "/var/log/containers", "/usr/libexec/kubernetes", "/run", "/opt",
}

// A machine is one with containerd, kubeadm, and a stand-in for systemd that has the unit of the kubelet only.
type machine struct {
	*isolate.Machine
	t          *testing.T
	name       string
	dir        string
	address    string
	containerd *exec.Cmd
}

const containerdConfig = `version = 3
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "registry.k8s.io/pause:3.10.2"
`

const conflist = `{"cniVersion": "0.4.0", "name": "lab", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
"ipam": {"type": "host-local", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}}, {"type": "portmap", "capabilities": {"portMappings": true}}]}`

// systemctl is the stand-in: systemd's commands as kubeadm calls them, for one unit.
const systemctl = `#!/bin/sh
pid() { kill -0 "$(cat /run/kubelet.pid 2>/dev/null)" 2>/dev/null; }
stop() { pid || return 0; kill "$(cat /run/kubelet.pid)"; while pgrep -x kubelet >/dev/null; do sleep 0.1; done; rm -f /run/kubelet.pid; }
start() { pid || { setsid sh DIR/service >/dev/null 2>&1 </dev/null & echo $! >/run/kubelet.pid; }; }
echo "$*" >>DIR/systemctl.log
case $1 in
daemon-reload | is-enabled) ;;
start) start ;;
stop) stop ;;
restart) stop; start ;;
is-active) pid ;;
status) pid && echo "Active: active" || { echo "Active: inactive"; exit 3; } ;;
*) echo "systemctl: $1 is not supported" >&2; exit 1 ;;
esac
`

// service restarts the kubelet as systemd does, and passes the signal of a stop on.
const service = `trap 'trap - TERM; kill $child; wait $child; exit' TERM
while true; do
	[ ! -f /var/lib/kubelet/kubeadm-flags.env ] || . /var/lib/kubelet/kubeadm-flags.env
	COMMAND >>DIR/kubelet.log 2>&1 &
	child=$!
	wait $child
	echo "the kubelet has ended: $?" >>DIR/kubelet.log
	sleep 0.5
done
`

// newMachine makes a machine with containerd and images, whose kubelet is not started.
func newMachine(t *testing.T, name, address, pods string, images []string) *machine {
	t.Helper()
	m := &machine{t: t, name: name, dir: filepath.Join(t.TempDir(), name), address: address}
	require.NoError(t, os.Mkdir(m.dir, 0o755))
	var err error
	m.Machine, err = isolate.OpenMachine(t.Context(), name, filepath.Join(m.dir, "machine"), ownDirectories...)
	t.Cleanup(func() {
		if t.Failed() {
			for _, log := range []string{"kubelet.log", "containerd.log", "systemctl.log"} {
				t.Logf("%s of %s:\n%s", log, name, tail(filepath.Join(m.dir, log), 60))
			}
		}
		assert.NoError(t, m.Close())
		if m.containerd != nil {
			_ = m.containerd.Wait() // it was killed with the machine
		}
	})
	require.NoError(t, err)

	kubernetes, err := labenv.Cached("kubernetes-" + lab.KubernetesVersion)
	require.NoError(t, err)
	m.useKubelet(os.Getenv("KUBEPARTS_KUBELET"))
	bin := filepath.Join(m.dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "systemctl"), []byte(strings.ReplaceAll(systemctl, "DIR", m.dir)), 0o755))
	m.write("containerd.toml", containerdConfig)
	containerd := lab.FindContainerd()
	t.Setenv("PATH", strings.Join([]string{bin, filepath.Dir(containerd), kubernetes, "/usr/sbin", "/usr/bin", "/sbin", "/bin"}, ":"))
	m.sh(fmt.Sprintf("mkdir -p /opt/cni && ln -s /usr/lib/cni /opt/cni/bin && cat >/etc/cni/net.d/10-lab.conflist <<'END'\n%s\nEND", fmt.Sprintf(conflist, pods)))
	log, err := os.Create(filepath.Join(m.dir, "containerd.log"))
	require.NoError(t, err)
	daemon := m.Command(context.WithoutCancel(t.Context()), containerd, "--config", filepath.Join(m.dir, "containerd.toml"))
	daemon.Stdout, daemon.Stderr = log, log
	require.NoError(t, daemon.Start())
	m.containerd = daemon
	m.until("containerd answers", "ctr version")
	for _, image := range images {
		m.sh("ctr --namespace k8s.io images import " + image)
	}
	for _, tag := range tags() {
		m.sh("ctr --namespace k8s.io images tag " + kubernetesImage + " " + tag)
	}
	return m
}

// kubeletCommand returns the command of the drop-in with another program, as a line of a shell script.
func kubeletCommand(t *testing.T, dropIn, program string) string {
	t.Helper()
	commands := regexp.MustCompile(`(?m)^ExecStart=(/\S+) (.+)$`).FindStringSubmatch(dropIn)
	require.NotNil(t, commands, "the drop-in has no command")
	line := program + " " + commands[2]
	for _, v := range regexp.MustCompile(`(?m)^Environment="(\w+)=(.*)"$`).FindAllStringSubmatch(dropIn, -1) {
		line = strings.ReplaceAll(line, "$"+v[1], v[2])
	}
	return line
}

// sh runs a script in the machine and returns its output. A failure fails the test.
func (m *machine) sh(script string) string {
	m.t.Helper()
	out, err := m.try(script, 5*time.Minute)
	require.NoError(m.t, err, "%s\n%s", script, out)
	return out
}

func (m *machine) try(script string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), limit)
	defer cancel()
	cmd := m.Command(ctx, "sh", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(m.dir, "bin")+":"+os.Getenv("PATH"), "KUBECONFIG=/etc/kubernetes/admin.conf")
	cmd.WaitDelay = time.Second // the kubelet that a script has started may hold the pipe
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// until waits until a script succeeds, and returns its output.
func (m *machine) until(what, script string) string {
	m.t.Helper()
	for begun := time.Now(); ; time.Sleep(300 * time.Millisecond) {
		out, err := m.try(script, time.Minute)
		if err == nil {
			return out
		}
		require.Less(m.t, time.Since(begun), 4*time.Minute, "%s: %v: %s", what, err, out)
	}
}

// containers returns the IDs of the running containers and sandboxes.
func (m *machine) containers() []string {
	m.t.Helper()
	return strings.Fields(m.sh("ctr --namespace k8s.io tasks list --quiet 2>/dev/null"))
}

func tail(file string, lines int) string {
	out, err := exec.Command("tail", "-n", fmt.Sprint(lines), file).CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// A step is a part of the test; those after one that fails do not run.
type step struct {
	name string
	run  func()
}

func (m *machine) steps(steps ...step) {
	m.t.Helper()
	for _, s := range steps {
		begun := time.Now()
		s.run()
		require.False(m.t, m.t.Failed(), s.name)
		m.t.Logf("%s: %.1f s", s.name, time.Since(begun).Seconds())
	}
}

func (m *machine) file(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) write(name, content string) {
	m.t.Helper()
	require.NoError(m.t, os.WriteFile(m.file(name), []byte(content), 0o644))
}

// useKubelet sets the program of the service.
func (m *machine) useKubelet(program string) {
	m.t.Helper()
	dropIn, err := os.ReadFile("../../examples/kubelet/10-kubeadm.conf")
	require.NoError(m.t, err)
	m.write("service", strings.NewReplacer("DIR", m.dir, "COMMAND", kubeletCommand(m.t, string(dropIn), program)).Replace(service))
}

// restartKubelet restarts it and waits until it is healthy. No container is started again.
func (m *machine) restartKubelet() {
	m.t.Helper()
	before := m.containers()
	m.sh("systemctl restart kubelet")
	m.until("the kubelet is healthy", "curl -sSf -m 5 http://127.0.0.1:10248/healthz")
	assert.Subset(m.t, m.containers(), before, "a container was started again")
}

// link connects the machines and their pods.
func link(t *testing.T, one, two *machine) {
	t.Helper()
	require.NoError(t, isolate.Link(t.Context(), one.Machine, two.Machine, one.address+"/24", two.address+"/24"))
	one.sh("ip route add 10.244.2.0/24 via " + two.address)
	two.sh("ip route add 10.244.1.0/24 via " + one.address)
}

// realKubelet returns Kubernetes' kubelet.
func realKubelet(t *testing.T) string {
	t.Helper()
	program, err := labenv.FindKubelet("")
	require.NoError(t, err)
	return program
}
