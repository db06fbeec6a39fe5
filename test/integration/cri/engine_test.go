package cri_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
)

// Fields of the pod spec have the specified effect in the containers, on a real
// containerd. Each topic is a file; the pods of all topics share one daemon and run
// in parallel.
//
// AppArmor and SELinux are not covered: a kernel without them ignores these fields,
// so that there is no effect to check.
func TestIntegrationThePodSpec(t *testing.T) {
	lab.Need(t, "iptables")
	s := newSharedEngine(t)
	for topic, run := range map[string]func(*testing.T, *sharedEngine){
		"hooks": hooksOnContainerd, "sidecars": sidecarsOnContainerd, "ephemeral containers": ephemeralOnContainerd,
		"termination messages": messagesOnContainerd, "security": securityOnContainerd, "namespaces": namespacesOnContainerd,
		"names": namesOnContainerd, "resources": resourcesOnContainerd, "adopted sandboxes": adoptedOnContainerd,
		"probes": probesOnContainerd,
	} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			run(t, s)
		})
	}
}

// A engine is an engine on a containerd for many concurrent pods.
type sharedEngine struct {
	rt     *cri.Runtime
	daemon *lab.Daemon
	dir    string
	seen   *events
	calls  *stopCalls
	pods   atomic.Int32
}

// The DNS settings and addresses of the engine's node.
const (
	nodeDNS       = "192.0.2.1"
	nodeResolv    = "nameserver " + nodeDNS + "\nsearch node.test\noptions ndots:1\n"
	clusterDNS    = "192.0.2.10"
	clusterDomain = "cluster.test"
	nodeMemory    = 1 << 30
)

func newSharedEngine(t *testing.T) *sharedEngine {
	t.Helper()
	daemon := lab.Containerd(t, lab.ContainerdConfig{Images: []lab.Image{userImage(t)}})
	client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
	s := &sharedEngine{daemon: daemon, dir: t.TempDir(), seen: new(events), calls: &stopCalls{RuntimeService: client.Runtime}}
	resolv := filepath.Join(s.dir, "resolv.conf")
	require.NoError(t, os.WriteFile(resolv, []byte(nodeResolv), 0o644))
	s.rt, err = cri.New(cri.Config{
		Name: client.Name, Runtime: s.calls, Images: client.Images, Record: s.seen.record,
		Dirs:       cri.Dirs{Root: s.dir + "/root", PodLogs: s.dir + "/pods"},
		Containers: cri.ContainerConfig{Backoff: plan.BackoffConfig{Initial: time.Second}},
		Node:       cri.Node{DNS: cri.DNS{ResolvConf: resolv, ClusterDNS: []string{clusterDNS}, ClusterDomain: clusterDomain}, IPs: func() []string { return []string{"192.0.2.99"} }, Facts: podconfig.Node{MemoryBytes: nodeMemory}},
	})
	require.NoError(t, err)
	return s
}

// stopCalls records the timeouts of StopContainer calls, which, unlike durations, do not
// depend on the load of the machine.
type stopCalls struct {
	internalapi.RuntimeService

	mu     sync.Mutex
	graces map[string][]int64 // by the runtime's own ID
}

func (c *stopCalls) StopContainer(ctx context.Context, id string, timeout int64) error {
	c.mu.Lock()
	if c.graces == nil {
		c.graces = map[string][]int64{}
	}
	c.graces[id] = append(c.graces[id], timeout)
	c.mu.Unlock()
	return c.RuntimeService.StopContainer(ctx, id, timeout)
}

// An enginePod is a pod on the engine with its own agent.
type enginePod struct {
	*sharedEngine
	t       *testing.T
	pod     *v1.Pod
	volumes map[string]runtime.Volume
	probes  *runtime.ProbeResults

	// failures are the failed actions in order, except back-offs.
	failures []runtime.Action
}

// enginePod returns a new pod of the containers, with a unique name. It is removed when
// the test ends.
func (s *sharedEngine) enginePod(t *testing.T, containers ...v1.Container) *enginePod {
	t.Helper()
	pod := podOf(containers...)
	n := s.pods.Add(1)
	pod.Name, pod.UID = fmt.Sprintf("pod-%d", n), types.UID(fmt.Sprintf("uid-%d", n))
	pod.Spec.TerminationGracePeriodSeconds = new(int64(2))
	a := &enginePod{sharedEngine: s, t: t, pod: pod, volumes: map[string]runtime.Volume{}}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		require.NoError(t, s.rt.KillPod(ctx, runtime.KillRequest{UID: pod.UID, Pod: a.pod, GracePeriodSeconds: new(int64(0))}))
	})
	return a
}

// volume mounts one directory into every container of the pod, at /v, and returns its
// path on the host.
func (a *enginePod) volume() string {
	dir := a.t.TempDir()
	require.NoError(a.t, os.Chmod(dir, 0o777))
	a.pod.Spec.Volumes = append(a.pod.Spec.Volumes, v1.Volume{Name: "v"})
	a.volumes["v"] = runtime.Volume{Path: dir}
	for _, list := range [][]v1.Container{a.pod.Spec.InitContainers, a.pod.Spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = append(list[i].VolumeMounts, v1.VolumeMount{Name: "v", MountPath: "/v"})
		}
	}
	return dir
}

// sync runs one SyncPod, and adds its failures except back-offs to failures.
func (a *enginePod) sync(st *runtime.PodStatus) {
	a.t.Helper()
	res, err := a.rt.SyncPod(a.t.Context(), runtime.SyncRequest{Pod: a.pod, Status: st, Volumes: a.volumes, Probes: a.probes})
	require.NoError(a.t, a.t.Context().Err(), "%v", err)
	for _, action := range res.Actions {
		if action.Err != nil && action.Reason != "CrashLoopBackOff" {
			a.failures = append(a.failures, action)
		}
	}
}

// until syncs the pod as an agent would until done reports true for its status.
// Failures are collected in failures.
func (a *enginePod) until(what string, done func(*runtime.PodStatus) bool) *runtime.PodStatus {
	a.t.Helper()
	end := time.Now().Add(time.Minute)
	for {
		st := a.status()
		if done(st) {
			return st
		}
		require.True(a.t, time.Now().Before(end), "%s: the pod does not get there: %+v\nfailures: %.4000v\nevents: %.4000v", what, st, fmt.Sprint(a.failures), strings.Join(a.events(), "\n"))
		a.sync(st)
		wait(a.t, 50*time.Millisecond)
	}
}

func (a *enginePod) status() *runtime.PodStatus {
	a.t.Helper()
	st, err := a.rt.PodStatus(a.t.Context(), a.pod.UID)
	require.NoError(a.t, err)
	return st
}

// runs drives the pod until all its containers run, and returns its status.
func (a *enginePod) runs() *runtime.PodStatus {
	a.t.Helper()
	st := a.until("all run", func(st *runtime.PodStatus) bool {
		return !slices.ContainsFunc(a.pod.Spec.Containers, func(c v1.Container) bool { return !is(st, c.Name, runtime.ContainerRunning) })
	})
	require.Empty(a.t, a.failures)
	return st
}

// ends drives a pod of policy Never until all its containers have exited, and
// returns its status.
func (a *enginePod) ends() *runtime.PodStatus {
	a.t.Helper()
	a.pod.Spec.RestartPolicy = v1.RestartPolicyNever
	st := a.until("all exited", func(st *runtime.PodStatus) bool {
		return !slices.ContainsFunc(a.pod.Spec.Containers, func(c v1.Container) bool { return !is(st, c.Name, runtime.ContainerExited) })
	})
	require.Empty(a.t, a.failures)
	return st
}

// is reports whether the newest instance of the container is in that state.
func is(st *runtime.PodStatus, name string, state runtime.ContainerState) bool {
	c := st.Container(name)
	return c != nil && c.State == state
}

// failsWith drives the pod until the action on the container fails for the
// reason, and returns the action.
func (a *enginePod) failsWith(container, reason string) runtime.Action {
	a.t.Helper()
	var found runtime.Action
	a.until(reason, func(*runtime.PodStatus) bool {
		for _, f := range a.failures {
			if f.Target == container && f.Reason == reason {
				found = f
				return true
			}
		}
		return false
	})
	return found
}

// kill stops the pod with its own grace period and returns the remaining status.
func (a *enginePod) kill() *runtime.PodStatus {
	a.t.Helper()
	require.NoError(a.t, a.rt.KillPod(a.t.Context(), runtime.KillRequest{UID: a.pod.UID, Pod: a.pod}))
	return a.status()
}

// graces are the seconds that StopContainer was called with for the container.
func (a *enginePod) graces(c *runtime.ContainerStatus) []int64 {
	a.calls.mu.Lock()
	defer a.calls.mu.Unlock()
	_, id, _ := strings.Cut(c.ID, "://")
	return slices.Clone(a.calls.graces[id])
}

// log returns the output of an instance of a container, without the CRI's format.
func (a *enginePod) log(container string, attempt int) string {
	a.t.Helper()
	path := filepath.Join(a.dir, "pods", fmt.Sprintf("%s_%s_%s", a.pod.Namespace, a.pod.Name, a.pod.UID), container, strconv.Itoa(attempt)+".log")
	var b strings.Builder
	for line := range strings.Lines(readFile(a.t, path)) {
		if fields := strings.SplitN(line, " ", 4); len(fields) == 4 {
			text := fields[3]
			if fields[2] == "P" {
				text = strings.TrimSuffix(text, "\n")
			}
			b.WriteString(text)
		}
	}
	return b.String()
}

// waitsForLine waits until the first instance of a running container has written the
// line; a running container may not have written its first line yet.
func (a *enginePod) waitsForLine(container, line string) {
	a.t.Helper()
	end := time.Now().Add(time.Minute)
	for !strings.Contains(a.log(container, 0), line) {
		require.True(a.t, time.Now().Before(end), "%s does not log %q but\n%s", container, line, a.log(container, 0))
		wait(a.t, 20*time.Millisecond)
	}
}

// exec runs a shell command in a container, and returns its output.
func (a *enginePod) exec(c *runtime.ContainerStatus, command string) string {
	a.t.Helper()
	out, err := a.rt.Exec(a.t.Context(), c.ID, []string{"sh", "-c", command}, time.Minute)
	require.NoError(a.t, err)
	require.Zero(a.t, out.ExitCode, "%s: %s%s", command, out.Stdout, out.Stderr)
	return string(out.Stdout)
}

// events returns the recorded events of the pod, as "Type Reason path: message".
func (a *enginePod) events() []string {
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	var lines []string
	for _, e := range a.seen.list {
		if e.Object.UID == a.pod.UID {
			lines = append(lines, fmt.Sprintf("%s %s %s: %s", e.Type, e.Reason, e.Object.FieldPath, e.Message))
		}
	}
	return lines
}

// userImage returns busybox with a user that is a name, not a number.
func userImage(t *testing.T) lab.Image {
	t.Helper()
	return lab.Image{Ref: "kubeparts.test/nobody:1", User: "nobody", Files: []lab.File{
		{Path: "etc/", Mode: 0o755},
		{Path: "etc/passwd", Mode: 0o644, Data: []byte("nobody:x:65534:65534:nobody:/:/bin/sh\n")},
	}}
}

// serves is the script of a container that exits with 0 on SIGTERM.
const serves = "trap 'exit 0' TERM; while true; do sleep 0.1; done"
