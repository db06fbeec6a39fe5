package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// traces is what a daemon has on the machine, outside its directory and in it.
type traces struct {
	layout    layout
	processes []int
	container string // the ID that cgroups have
}

func TestIntegrationADaemonRunsPodsDiesAndLeavesNothing(t *testing.T) {
	Need(t, "containerd", "iptables")
	var left traces
	t.Run("daemon", func(t *testing.T) {
		d := Containerd(t, ContainerdConfig{})
		left.layout = d.layout
		rt := dialTest(t, d)
		t.Logf("containerd %s at %s", d.Version, d.Endpoint)

		gateway := strings.TrimSuffix(d.layout.subnet, "0/22") + "1"
		sandbox, config := runSandbox(t, rt, "web", gateway)
		server := runContainer(t, rt, sandbox, config, "server", "mkdir /www && echo hello > /www/index.html && exec httpd -f -p 8080 -h /www")
		once := runContainer(t, rt, sandbox, config, "once", "exit 3")
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			status, err := rt.ContainerStatus(t.Context(), once, false)
			require.NoError(c, err)
			require.Equal(c, runtimeapi.ContainerState_CONTAINER_EXITED, status.Status.State)
			require.Equal(c, int32(3), status.Status.ExitCode)
		}, patience, 50*time.Millisecond)

		pod, err := rt.PodSandboxStatus(t.Context(), sandbox, false)
		require.NoError(t, err)
		url := "http://" + net.JoinHostPort(pod.Status.Network.Ip, "8080") + "/"
		requireBody(t, url, "hello\n")
		requireBody(t, "http://"+gateway+":18080/", "hello\n") // the host port

		listing, err := List(t.Context(), d.Endpoint)
		require.NoError(t, err)
		require.Len(t, listing.Sandboxes, 1)
		require.Len(t, listing.Containers, 2)
		require.Contains(t, listing.String(), "default/web")
		require.Contains(t, listing.String(), "EXITED")
		t.Logf("\n%s", listing)

		d.Pause()
		hung, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err = rt.ListContainers(hung, nil)
		require.ErrorContains(t, err, "DeadlineExceeded")
		requireBody(t, url, "hello\n")
		d.Resume()
		_, err = rt.ListContainers(t.Context(), nil)
		require.NoError(t, err)

		d.Kill()
		require.Zero(t, d.PID())
		_, err = rt.ListContainers(t.Context(), nil)
		require.Error(t, err)
		requireBody(t, url, "hello\n")
		d.Start()
		rt = dialTest(t, d)
		status, err := rt.ContainerStatus(t.Context(), server, false)
		require.NoError(t, err)
		require.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, status.Status.State)

		left.container = server
		left.processes, err = processes(d.layout.dir)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(left.processes), 4, "daemon, shim, pause and httpd")
	})
	if left.layout.dir != "" {
		requireNothingLeft(t, left)
	}
}

// A daemon that is dead cannot help to clean up, nor can a test that was killed.
func TestIntegrationADeadDaemonLeavesNothing(t *testing.T) {
	Need(t, "containerd", "iptables")
	var left traces
	t.Run("daemon", func(t *testing.T) {
		d := Containerd(t, ContainerdConfig{})
		left.layout = d.layout
		rt := dialTest(t, d)
		sandbox, config := runSandbox(t, rt, "orphan", "127.0.0.1")
		left.container = runContainer(t, rt, sandbox, config, "sleeper", "sleep 3600")
		var err error
		left.processes, err = processes(d.layout.dir)
		require.NoError(t, err)
		require.NotEmpty(t, cgroups(t, left.container))
		require.Contains(t, natRules(), d.layout.bridge)
		d.Kill()
	})
	if left.layout.dir != "" {
		requireNothingLeft(t, left)
	}
}

func requireNothingLeft(t *testing.T, left traces) {
	t.Helper()
	for _, pid := range left.processes {
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		require.Empty(t, string(args), "process %d lives", pid)
	}
	more, err := processes(left.layout.dir)
	require.NoError(t, err)
	require.Empty(t, more)
	require.NoDirExists(t, left.layout.dir)
	require.NoDirExists(t, "/sys/class/net/"+left.layout.bridge)
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.NotContains(t, string(mountinfo), left.layout.dir)
	cached, err := filepath.Glob("/var/lib/cni/results/" + left.layout.bridge + "-*")
	require.NoError(t, err)
	require.Empty(t, cached)
	require.Empty(t, loopbacks(left.layout.dir))
	require.Empty(t, cgroups(t, left.container))
	require.NotContains(t, natRules(), left.layout.bridge)
}

// cgroups returns those of one container, in every hierarchy of v1 or in v2.
func cgroups(t *testing.T, id string) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.Name() == id {
			found = append(found, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another test's
		}
		return err
	}))
	return found
}

// natRules are the host ports' rules, empty where iptables is missing.
func natRules() string {
	rules, _ := exec.Command("iptables", "-w", "-t", "nat", "-S").Output()
	return string(rules)
}

func dialTest(t *testing.T, d *Daemon) internalapi.RuntimeService {
	t.Helper()
	rt, err := dial(t.Context(), d.Endpoint)
	require.NoError(t, err)
	t.Cleanup(func() { rt.Close(context.WithoutCancel(t.Context())) })
	return rt
}

func runSandbox(t *testing.T, rt internalapi.RuntimeService, name, hostIP string) (string, *runtimeapi.PodSandboxConfig) {
	t.Helper()
	config := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-of-" + name},
		Labels:       map[string]string{"io.kubernetes.pod.name": name},
		LogDirectory: t.TempDir(),
		PortMappings: []*runtimeapi.PortMapping{{ContainerPort: 8080, HostPort: 18080, HostIp: hostIP}},
		Linux:        &runtimeapi.LinuxPodSandboxConfig{},
	}
	id, err := rt.RunPodSandbox(t.Context(), config, "")
	require.NoError(t, err)
	return id, config
}

func runContainer(t *testing.T, rt internalapi.RuntimeService, sandbox string, config *runtimeapi.PodSandboxConfig, name, script string) string {
	t.Helper()
	id, err := rt.CreateContainer(t.Context(), sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name},
		Image:    &runtimeapi.ImageSpec{Image: Busybox},
		Command:  []string{"sh", "-c", script},
		LogPath:  name + ".log",
		Linux:    &runtimeapi.LinuxContainerConfig{},
	}, config)
	require.NoError(t, err)
	require.NoError(t, rt.StartContainer(t.Context(), id))
	return id
}

func requireBody(t *testing.T, url, want string) {
	t.Helper()
	client := http.Client{Timeout: 90 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		res, err := client.Get(url)
		require.NoError(c, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(c, err)
		require.Equal(c, want, string(body))
	}, patience, 50*time.Millisecond)
}
