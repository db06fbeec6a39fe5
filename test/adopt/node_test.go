//go:build linux

package adopt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cgroupdir"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// A node is a runtime with everything that a kubelet and this repository's take over from
// each other: configuration, root directory, cgroups, logs.
type node struct {
	t       *testing.T
	daemon  *lab.Daemon
	dir     string
	config  string // the KubeletConfiguration
	port    string // where pods are listed, read-only
	flags   []string
	running *exec.Cmd // the present kubelet; nil if none runs
	out     *bytes.Buffer
}

// newNode returns a node without a kubelet, on a new containerd. Lines are added to the
// KubeletConfiguration.
func newNode(t *testing.T, lines ...string) *node {
	t.Helper()
	n := bareNode(t)
	n.daemon = lab.Containerd(t, lab.ContainerdConfig{})
	n.configure(n.daemon.Endpoint, lines...)
	return n
}

// bareNode returns a node without a runtime and a kubelet.
func bareNode(t *testing.T) *node {
	t.Helper()
	lab.Need(t, "containerd")
	dir, err := os.MkdirTemp("", "adopt") // paths of sockets must be short
	require.NoError(t, err)
	n := &node{t: t, dir: dir, out: new(bytes.Buffer)}
	t.Cleanup(n.cleanup) // after the containers have ended with the runtime
	for _, name := range []string{"manifests", "root", "logs", "control"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	require.NoError(t, cgroupdir.Make(n.cgroupDirs())) // which a kubelet requires to exist
	return n
}

// configure writes the KubeletConfiguration. Its cleanup stops the kubelet.
func (n *node) configure(endpoint string, lines ...string) {
	n.t.Helper()
	n.t.Cleanup(n.stop)
	ports, err := labenv.FreePorts(3)
	require.NoError(n.t, err)
	n.port = strconv.Itoa(ports[0])
	n.config = filepath.Join(n.dir, "config.yaml")
	text := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: %[1]s/manifests
podLogsDir: %[1]s/logs
containerRuntimeEndpoint: %[2]s
cgroupRoot: %[3]s
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
evictionHard: {memory.available: 1Mi, nodefs.available: 1Mi, imagefs.available: 1Mi, nodefs.inodesFree: "1", imagefs.inodesFree: "1"}
imageGCHighThresholdPercent: 100
imageMinimumGCAge: 24h
oomScoreAdj: 0
address: 127.0.0.1
port: %[5]d
readOnlyPort: %[4]d
healthzBindAddress: 127.0.0.1
healthzPort: %[6]d
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
fileCheckFrequency: 2s
syncFrequency: 10s
resolvConf: ""
clusterDNS: [10.0.0.10]
clusterDomain: cluster.local
`, n.dir, endpoint, n.cgroup(), ports[0], ports[1], ports[2]) + strings.Join(lines, "\n") + "\n"
	require.NoError(n.t, os.WriteFile(n.config, []byte(text), 0o644))
}

// cgroup is a parent that no other node has.
func (n *node) cgroup() string { return "/" + filepath.Base(n.dir) }

// cgroupDirs are the directories of the parent cgroup.
func (n *node) cgroupDirs() []string {
	dirs, err := cgroupdir.Of(n.cgroup())
	require.NoError(n.t, err)
	return dirs
}

func (n *node) cleanup() {
	if n.t.Failed() {
		lines := strings.Split(n.out.String(), "\n")
		n.t.Logf("the last output:\n%s", strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); strings.HasPrefix(fields[4], n.dir+"/") {
			_ = syscall.Unmount(fields[4], syscall.MNT_DETACH)
		}
	}
	_ = cgroupdir.Remove(n.cgroupDirs())
	require.NoError(n.t, os.RemoveAll(n.dir))
}

// A program is a kubelet: a real one of some version, or this repository's.
type program struct{ name, path string }

// kubelets are the real ones: those of KUBEPARTS_KUBELETS, separated by commas, or all in
// the cache that hack/kubelet.sh fills.
func kubelets(t *testing.T) (found []program) {
	lab.Need(t, "containerd") // before anything is built
	cache, err := lab.CacheDir()
	require.NoError(t, err)
	paths, err := filepath.Glob(filepath.Join(cache, "kubelet-v*", "kubelet"))
	require.NoError(t, err)
	if named := os.Getenv("KUBEPARTS_KUBELETS"); named != "" {
		paths = nil
		for version := range strings.SplitSeq(named, ",") {
			paths = append(paths, filepath.Join(cache, "kubelet-"+version, "kubelet"))
		}
	}
	for _, path := range paths {
		require.FileExists(t, path, "build it with hack/kubelet.sh")
		found = append(found, program{strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "kubelet-"), path})
	}
	if len(found) == 0 {
		t.Skip("there is no kubelet; build one with hack/kubelet.sh v1.37.2")
	}
	return found
}

// ours builds this repository's kubelet once; KUBEPARTS_KUBELET is the path of one that was
// built before.
var ours = sync.OnceValues(func() (program, error) {
	if path := os.Getenv("KUBEPARTS_KUBELET"); path != "" {
		return program{"kubeparts", path}, nil
	}
	var err error
	if buildDir, err = os.MkdirTemp("", "adopt-build"); err != nil {
		return program{}, err
	}
	path := filepath.Join(buildDir, "kubelet")
	return program{"kubeparts", path}, labenv.Build(context.Background(), path)
})

var buildDir string // of ours; empty: nothing was built

func TestMain(m *testing.M) {
	code := m.Run()
	if buildDir != "" {
		_ = os.RemoveAll(buildDir)
	}
	os.Exit(code)
}

func kubeparts(t *testing.T) program {
	p, err := ours()
	require.NoError(t, err)
	return p
}

// start starts a kubelet and waits until it has synced.
func (n *node) start(p program) {
	n.t.Helper()
	require.Nil(n.t, n.running)
	fmt.Fprintf(n.out, "=== %s starts\n", p.name)
	args := []string{"--config=" + n.config, "--root-dir=" + filepath.Join(n.dir, "root"), "--hostname-override=node", "--v=2",
		"--cert-dir=" + filepath.Join(n.dir, "root", "pki")}
	n.running = exec.Command(p.path, append(args, n.flags...)...)
	n.running.Stdout, n.running.Stderr = n.out, n.out
	require.NoError(n.t, n.running.Start())
	n.until(p.name+" lists pods", func() error {
		_, err := n.pods()
		return err
	})
}

// stop ends the kubelet as a service manager does; the pods go on.
func (n *node) stop() {
	if n.running == nil {
		return
	}
	_ = n.running.Process.Signal(syscall.SIGTERM)
	killed := time.AfterFunc(patience/4, func() { _ = n.running.Process.Kill() })
	_ = n.running.Wait() // a kubelet exits with an error after a signal
	killed.Stop()
	n.running = nil
}

// pods returns the pods that the kubelet lists, by name without the node's.
func (n *node) pods() (map[string]v1.Pod, error) {
	client := http.Client{Timeout: 90 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://127.0.0.1:" + n.port + "/pods")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	var list v1.PodList
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	if err == nil {
		err = json.Unmarshal(body, &list)
	}
	pods := map[string]v1.Pod{}
	for _, pod := range list.Items {
		pods[strings.TrimSuffix(pod.Name, "-node")] = pod
	}
	return pods, err
}

func (n *node) mustPods() map[string]v1.Pod {
	n.t.Helper()
	pods, err := n.pods()
	require.NoError(n.t, err)
	return pods
}

// until waits until check finds nothing wrong.
func (n *node) until(what string, check func() error) {
	n.t.Helper()
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begun) > patience {
			n.t.Fatalf("not within %v: %s: %v", patience, what, err)
		}
	}
}

// write puts a manifest in its place, complete.
func (n *node) write(name, text string) {
	n.t.Helper()
	tmp := filepath.Join(n.dir, name)
	require.NoError(n.t, os.WriteFile(tmp, []byte(n.replaced(text)), 0o644))
	require.NoError(n.t, os.Rename(tmp, filepath.Join(n.dir, "manifests", name)))
}

// replaced returns a manifest with the directory that the test shares with its pods.
func (n *node) replaced(text string) string {
	return strings.ReplaceAll(text, "CONTROL", filepath.Join(n.dir, "control"))
}

func (n *node) remove(name string) {
	n.t.Helper()
	require.NoError(n.t, os.Remove(filepath.Join(n.dir, "manifests", name)))
}

// writeCorpus writes the manifests of testdata/pods and returns the names of the pods.
func (n *node) writeCorpus() (names []string) {
	n.t.Helper()
	paths, err := filepath.Glob("testdata/pods/" + cmp.Or(os.Getenv("KUBEPARTS_ADOPT_PODS"), "*") + ".yaml")
	require.NoError(n.t, err)
	require.NotEmpty(n.t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(n.t, err)
		n.write(filepath.Base(path), string(text))
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".yaml"))
	}
	return names
}

// settled returns an error unless all containers of the pod are ready, or it has ended.
func settled(pod v1.Pod) error {
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return nil
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		return fmt.Errorf("%s is %q: %s", pod.Name, pod.Status.Phase, pod.Status.Message)
	}
	for _, c := range pod.Status.ContainerStatuses {
		if ended := c.State.Terminated; !c.Ready && (ended == nil || ended.ExitCode != 0) {
			return fmt.Errorf("%s is %s: container %s: %+v", pod.Name, pod.Status.Phase, c.Name, c.State)
		}
	}
	return nil
}

// untilSettled waits until these pods are as they are to stay.
func (n *node) untilSettled(names ...string) {
	n.t.Helper()
	n.until("the pods are settled", func() error {
		pods, err := n.pods()
		for _, name := range names {
			if err == nil {
				err = settled(pods[name])
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return err
	})
}

// passSyncs waits until each pod has been synced again, as it is periodically.
func (n *node) passSyncs() { time.Sleep(20 * time.Second) }

// instances returns the containers of the runtime and their state, as "namespace/pod UID
// container attempt ID", and its sandboxes, as "namespace/pod UID sandbox attempt ID".
func (n *node) instances() map[string]string {
	n.t.Helper()
	list, err := lab.List(n.t.Context(), n.daemon.Endpoint)
	require.NoError(n.t, err)
	found := map[string]string{}
	for _, s := range list.Sandboxes {
		found[fmt.Sprintf("%s/%s %s sandbox %d %.12s", s.Metadata.Namespace, s.Metadata.Name, s.Metadata.Uid, s.Metadata.Attempt, s.Id)] = s.State.String()
	}
	for _, c := range list.Containers {
		found[fmt.Sprintf("%s %s %d %.12s", podOf(c), c.Metadata.Name, c.Metadata.Attempt, c.Id)] = c.State.String()
	}
	return found
}

func podOf(c *runtimeapi.Container) string {
	return c.Labels["io.kubernetes.pod.namespace"] + "/" + c.Labels["io.kubernetes.pod.name"] + " " + c.Labels["io.kubernetes.pod.uid"]
}

// changed returns a line for each instance that was added, removed or has another state.
func changed(before, after map[string]string) (lines []string) {
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if is := cmp.Or(after[id], "removed"); is != before[id] {
			lines = append(lines, fmt.Sprintf("%s: %s, was %s", id, is, before[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(after)) {
		if _, was := before[id]; !was {
			lines = append(lines, id+": new, "+after[id])
		}
	}
	return lines
}
