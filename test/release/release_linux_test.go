package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
	"github.com/kubeparts/kubeparts/internal/lab"
)

// files returns the files of the release that match a pattern, in which ARCH is this machine's.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	dir := os.Getenv("KUBEPARTS_RELEASE")
	if dir == "" {
		t.Skip("KUBEPARTS_RELEASE names no directory of hack/release")
	}
	found, err := filepath.Glob(filepath.Join(dir, strings.ReplaceAll(pattern, "ARCH", runtime.GOARCH)))
	require.NoError(t, err)
	return found
}

// the returns the one file that matches.
func the(t *testing.T, pattern string) string {
	t.Helper()
	found := files(t, pattern)
	require.Len(t, found, 1, "files %s", pattern)
	return found[0]
}

// run runs a command to its end and returns its output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s %s:\n%s", name, strings.Join(args, " "), out)
	return string(out)
}

// start starts a program that is interrupted when the test ends, and killed if that does not end it. It
// returns a channel that is closed when the program has ended.
func start(t *testing.T, cmd *exec.Cmd) (ended chan struct{}) {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log")
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	ended = make(chan struct{})
	go func() {
		err = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		<-ended
		kill.Stop()
		assert.NoError(t, err)
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s:\n%s", cmd, text)
		}
	})
	return ended
}

// waitForPods waits until the status page in a root directory lists a pod whose name begins with name,
// with one running container. It fails when the program has ended.
func waitForPods(t *testing.T, ended chan struct{}, root, name string) {
	t.Helper()
	began := time.Now()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(root, "kubelet.sock"))
		}}}
	running := func() bool {
		response, err := client.Get("http://localhost/pods")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		var pods v1.PodList
		_ = json.NewDecoder(response.Body).Decode(&pods)
		return slices.ContainsFunc(pods.Items, func(pod v1.Pod) bool {
			statuses := pod.Status.ContainerStatuses
			return strings.HasPrefix(pod.Name, name) && len(statuses) == 1 && statuses[0].State.Running != nil
		})
	}
	for !running() {
		select {
		case <-ended:
			require.Fail(t, "the program has ended")
		case <-time.After(100 * time.Millisecond):
			require.Less(t, time.Since(began), 90*time.Second)
		}
	}
	t.Logf("a static pod runs after %.1f s", time.Since(began).Seconds())
}

// manifest writes a static pod, and returns the directory.
func manifest(t *testing.T, dir, image string, pull v1.PullPolicy, command string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	text := `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {terminationGracePeriodSeconds: 1, hostNetwork: true, containers: [{name: main, image: "` +
		image + `", imagePullPolicy: ` + string(pull) + `, command: ` + command + `}]}}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(text), 0o644))
	return dir
}

func TestChecksumsAndBillsAreThoseOfTheFiles(t *testing.T) {
	sums := the(t, "SHA256SUMS")
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	cmd.Dir = filepath.Dir(sums)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, archive := range files(t, "*_linux_ARCH.tar.gz") {
		dir := t.TempDir()
		run(t, "tar", "-xzf", archive, "-C", dir, "--strip-components=1")
		name, _, _ := strings.Cut(filepath.Base(archive), "_")
		program, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		text, err := os.ReadFile(strings.TrimSuffix(archive, ".tar.gz") + ".spdx.json")
		require.NoError(t, err)
		var bill struct {
			Packages []struct {
				Name      string
				Checksums []struct{ ChecksumValue string }
			}
		}
		require.NoError(t, json.Unmarshal(text, &bill))
		sum := sha256.Sum256(program)
		assert.Equal(t, hex.EncodeToString(sum[:]), bill.Packages[0].Checksums[0].ChecksumValue, name)
		assert.Greater(t, len(bill.Packages), 20)
		help, err := exec.CommandContext(t.Context(), filepath.Join(dir, name), "--help").CombinedOutput()
		assert.Contains(t, string(help), "-", "%s --help: %v", name, err)
		assert.NotContains(t, string(help), "panic", name)
	}
}

// roomy is the flag of a kubelet that runs pods also on a disk that is nearly full.
const roomy = "--eviction-hard=nodefs.available<1Mi"

func TestTheArchiveRunsAPod(t *testing.T) {
	dir := t.TempDir()
	run(t, "tar", "-xzf", the(t, "kubelet_*_linux_ARCH.tar.gz"), "-C", dir, "--strip-components=1")
	assert.Contains(t, run(t, filepath.Join(dir, "kubelet"), "--version"), "Kubernetes v1.")
	root := filepath.Join(dir, "root")
	ended := start(t, exec.Command(filepath.Join(dir, "kubelet"), "--container-runtime-endpoint=process", roomy, "--root-dir="+root, "--pod-logs-dir="+filepath.Join(dir, "logs"),
		"--pod-manifest-path="+manifest(t, filepath.Join(dir, "manifests"), "host", v1.PullNever, `[sleep, "600"]`), "--stop-pods"))
	waitForPods(t, ended, root, "web")
}

// The agent's archive has pods, which its first command runs.
func TestTheAgentRunsThePodsOfItsArchive(t *testing.T) {
	dir := t.TempDir()
	run(t, "tar", "-xzf", the(t, "agent_*_linux_ARCH.tar.gz"), "-C", dir, "--strip-components=1")
	cmd := exec.Command(filepath.Join(dir, "agent"), "--manifests=pods", "--listen=unix://"+filepath.Join(dir, "root/kubelet.sock"), "--root="+filepath.Join(dir, "root"))
	cmd.Dir = dir
	ended := start(t, cmd)
	waitForPods(t, ended, filepath.Join(dir, "root"), "web")
}

// The kubelet of an image runs on containerd, and runs a pod of another image of the release there.
func TestIntegrationTheImagesRun(t *testing.T) {
	images := files(t, "*_oci.tar")
	require.NotEmpty(t, images)
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	socket := strings.TrimPrefix(daemon.Endpoint, "unix://")
	ctr := func(args ...string) []string {
		return append([]string{filepath.Join(filepath.Dir(lab.FindContainerd()), "ctr"), "--address", socket, "--namespace", "k8s.io"}, args...)
	}
	for _, image := range images {
		run(t, ctr()[0], ctr("images", "import", image)[1:]...)
	}
	// The CRI plugin gets imported images by events.
	name := func(program string) (name string) {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			names, err := daemon.Images(t.Context())
			require.NoError(c, err)
			i := slices.IndexFunc(names, func(n string) bool { return strings.Contains(n, "/"+program+":") })
			require.GreaterOrEqual(c, i, 0, "%s in %v", program, names)
			name = names[i]
		}, time.Minute, 50*time.Millisecond)
		return name
	}
	dir := daemon.Dir()
	root, logs := filepath.Join(dir, "kubelet"), filepath.Join(dir, "logs")
	require.NoError(t, os.Mkdir(root, 0o755))
	manifests := manifest(t, filepath.Join(dir, "manifests"), name("fakecri"), v1.PullNever, `[/fakecri, --listen, "unix:///tmp/fakecri.sock"]`)
	args := ctr("run", "--rm", "--privileged", "--net-host", "--mount", "type=bind,src="+dir+",dst="+dir+",options=rbind:rw:rshared",
		"--mount", "type=bind,src=/sys/fs/cgroup,dst=/sys/fs/cgroup,options=rbind:rw",
		name("kubelet"), "kubelet", "/kubelet", "--container-runtime-endpoint="+daemon.Endpoint, "--root-dir="+root, "--pod-logs-dir="+logs,
		"--pod-manifest-path="+manifests, "--stop-pods", "--cgroup-root=/"+filepath.Base(dir))
	t.Cleanup(func() { // the kubelet keeps the cgroups of its classes of pods
		tree, err := host.New(host.Config{})
		require.NoError(t, err)
		require.NoError(t, tree.Remove(context.WithoutCancel(t.Context()), cgroups.Name{filepath.Base(dir)}))
	})
	t.Run("the kubelet", func(t *testing.T) {
		ended := start(t, exec.Command(args[0], args[1:]...))
		waitForPods(t, ended, root, "web")
	})
}
