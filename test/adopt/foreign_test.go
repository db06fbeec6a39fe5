//go:build linux

package adopt

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/test/internal/cgroupdir"
)

// A pod of each QoS class.
const classes = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  terminationGracePeriodSeconds: 1
  hostNetwork: true
  containers:
  - {name: main, image: "kubeparts.test/busybox:1", command: [sleep, inf], resources: %[2]s}
`

var resourcesOf = map[string]string{
	"guaranteed": "{limits: {cpu: 10m, memory: 32Mi}}", "burstable": "{requests: {cpu: 10m}}", "besteffort": "{}",
}

// processes returns the processes below the cgroup of n, with those of the runtime's
// shims: what a kubelet that takes them for leftovers kills.
func (n *node) processes() (pids []string) {
	for _, dir := range n.cgroupDirs() {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Name() == "cgroup.procs" {
				text, _ := os.ReadFile(path)
				pids = append(pids, strings.Fields(string(text))...)
			}
			return nil
		})
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// startSecond runs this repository's kubelet next to that of n, with a root directory of its own,
// until it exits or for the time, and returns its output and whether it exited by itself.
func (n *node) startSecond(root, endpoint, cgroup string, lasts time.Duration, flags ...string) (string, bool) {
	n.t.Helper()
	manifests := filepath.Join(root, "manifests")
	require.NoError(n.t, os.MkdirAll(manifests, 0o755))
	require.NoError(n.t, os.WriteFile(filepath.Join(manifests, "own.yaml"), fmt.Appendf(nil, classes, "own", "{}"), 0o644))
	var out bytes.Buffer
	cmd := exec.Command(kubeparts(n.t).path, slices.Concat([]string{
		"--container-runtime-endpoint=" + endpoint, "--pod-manifest-path=" + manifests, "--root-dir=" + filepath.Join(root, "root"),
		"--pod-logs-dir=" + filepath.Join(n.dir, "logs"), "--cgroup-root=" + cgroup, "--hostname-override=second", "--listen=", "--stop-pods", "--fail-swap-on=false",
	}, flags)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(n.t, cmd.Start())
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	select {
	case <-exited:
		return out.String(), true
	case <-time.After(lasts):
	}
	require.NoError(n.t, cmd.Process.Signal(syscall.SIGINT))
	select {
	case <-exited:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		<-exited
		n.t.Errorf("it did not stop:\n%s", out.String())
	}
	return out.String(), false
}

// A kubelet whose process has another name, as that of k3s, or another node of this
// repository keeps all its pods when a node with another root directory starts on the same
// runtime or below the same cgroup root: the start is refused, or nothing is touched.
func TestIntegrationNothingOfAnotherNodeIsTouched(t *testing.T) {
	for _, other := range append(kubelets(t), kubeparts(t)) {
		t.Run(other.name, func(t *testing.T) {
			n := newNode(t)
			hidden := filepath.Join(n.dir, "k3s")
			require.NoError(t, os.Symlink(other.path, hidden))
			for name, resources := range resourcesOf {
				n.write(name+".yaml", fmt.Sprintf(classes, name, resources))
			}
			n.start(program{other.name, hidden})
			n.until("all pods run", func() error {
				for name := range resourcesOf {
					if pod := n.mustPods()[name]; pod.Status.Phase != v1.PodRunning {
						return fmt.Errorf("%s is %q", name, pod.Status.Phase)
					}
				}
				return nil
			})
			before, pids := n.instances(), n.processes()
			require.Len(t, before, 6)
			t.Logf("%d processes in 3 containers and 3 sandboxes", len(pids))
			logs, err := filepath.Glob(filepath.Join(n.dir, "logs", "*"))
			require.NoError(t, err)
			require.Len(t, logs, 3)
			untouched := func(t *testing.T) {
				t.Helper()
				assert.Empty(t, slices.DeleteFunc(changed(before, n.instances()), func(line string) bool { return strings.Contains(line, ": new, ") }))
				assert.Equal(t, pids, n.processes())
				for _, dir := range logs {
					assert.DirExists(t, dir)
				}
			}
			endpoint, fake := n.daemon.Endpoint, "unix://"+filepath.Join(n.dir, "fake.sock")
			serveFake(t, fake)
			for name, tc := range map[string]struct {
				endpoint, cgroup string
				remedies         []string
			}{
				"a runtime of its own": {fake, n.cgroup(), []string{"3 pods below " + n.cgroup() + "/kubepods", "stop it", "--cgroup-root", "--ignore-foreign-pods"}},
				"cgroups of its own":   {endpoint, n.cgroup() + "-second", []string{"3 pods", "stop it", "containerRuntimeEndpoint", "--ignore-foreign-pods"}},
				"a root directory":     {endpoint, n.cgroup(), []string{"3 pods", "stop it", "--ignore-foreign-pods"}},
			} {
				ignored := tc.endpoint != endpoint || other.name != "kubeparts" // which locks its runtime
				if !ignored {
					tc.remedies = []string{"in use", "another agent uses it"}
				}
				t.Run(name, func(t *testing.T) {
					root := t.TempDir()
					t.Cleanup(func() {
						_ = syscall.Unmount(filepath.Join(root, "root"), syscall.MNT_DETACH)
						dirs, _ := cgroupdir.Of(n.cgroup() + "-second")
						_ = cgroupdir.Remove(dirs)
					})
					began := time.Now()
					out, exited := n.startSecond(root, tc.endpoint, tc.cgroup, 20*time.Second)
					require.True(t, exited, "%s", out)
					for _, remedy := range tc.remedies {
						assert.Contains(t, out, remedy)
					}
					t.Logf("refused after %v: %s", time.Since(began).Round(time.Millisecond), out[max(0, strings.LastIndex(strings.TrimSpace(out), "\n")):])
					untouched(t)
					if !ignored {
						return
					}
					out, exited = n.startSecond(root, tc.endpoint, tc.cgroup, 15*time.Second, "--ignore-foreign-pods")
					require.False(t, exited, "%s", out)
					untouched(t)
					assert.Contains(t, out, "own", "it runs its own pod")
				})
			}
		})
	}
}
