package cri_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
)

// onContainerd returns the engine over a containerd of the test's own.
func onContainerd(t *testing.T) (*cri.Runtime, *lab.Daemon, *events, string) {
	t.Helper()
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
	dir, seen := t.TempDir(), new(events)
	rt, err := cri.New(cri.Config{
		Name: client.Name, Runtime: client.Runtime, Images: client.Images, Record: seen.record,
		Dirs:       cri.Dirs{Root: dir + "/root", PodLogs: dir + "/pods", ContainerLogs: dir + "/containers"},
		Containers: cri.ContainerConfig{Backoff: plan.BackoffConfig{Initial: 2 * time.Second}}, Calls: cri.CallConfig{Streams: new(streaming.Client)},
	})
	require.NoError(t, err)
	return rt, daemon, seen, dir
}

// drive syncs the pod as an agent would, until done reports true for its status.
func drive(t *testing.T, rt *cri.Runtime, pod *v1.Pod, volumes map[string]runtime.Volume, done func(*runtime.PodStatus) bool) *runtime.PodStatus {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for {
		st, err := rt.PodStatus(t.Context(), pod.UID)
		require.NoError(t, err)
		if done(st) {
			return st
		}
		require.True(t, time.Now().Before(end), "the pod does not get there: %+v", st)
		res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Status: st, Volumes: volumes})
		if err != nil { // only a back-off is no failure
			require.False(t, res.RetryAt.IsZero(), "%v", err)
			require.ErrorContains(t, err, "CrashLoopBackOff")
		}
		wait(t, 100*time.Millisecond)
	}
}

func script(name, text string) v1.Container {
	c := shell(lab.Busybox, text)
	c.Name, c.TerminationMessagePath, c.TerminationMessagePolicy = name, "/dev/termination-log", v1.TerminationMessageReadFile
	return c
}

func TestIntegrationPodLifecycleOnContainerd(t *testing.T) {
	rt, daemon, seen, dir := onContainerd(t)
	data := t.TempDir()
	mount := []v1.VolumeMount{{Name: "data", MountPath: "/data", SubPath: "made"}}
	setup := script("setup", "echo ready > /data/setup; sleep 0.3")
	setup.VolumeMounts = mount
	web := script("web", `trap 'echo bye > /data/bye; exit 0' TERM; cat /data/setup; grep -c "$POD_IP" /etc/hosts; hostname; echo "$GREETING"; while true; do sleep 0.1; done`)
	web.VolumeMounts = mount
	web.Env = []v1.EnvVar{
		{Name: "POD_IP", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "GREETING", Value: "hello from $(POD_IP)"},
	}
	crash := script("crash", "sleep 0.3; echo out of luck > /dev/termination-log; exit 3")
	pod := podOf(web, crash)
	pod.UID = types.UID(fmt.Sprintf("it-%d", time.Now().UnixNano()))
	pod.Spec.InitContainers = []v1.Container{setup}
	pod.Spec.Volumes = []v1.Volume{{Name: "data"}}
	pod.Spec.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"192.0.2.53"}}
	volumes := map[string]runtime.Volume{"data": {Path: data}}

	// A containerd that takes longer than a back-off to report an exit leaves nothing to wait for.
	var recorded []string
	backOff := fmt.Sprintf("Warning BackOff spec.containers{crash}: Back-off restarting failed container crash in pod web_prod(%s)", pod.UID)
	st := drive(t, rt, pod, volumes, func(st *runtime.PodStatus) bool {
		recorded = append(recorded, seen.take()...)
		c := st.Container("crash")
		return c != nil && c.RestartCount >= 2 && c.State == runtime.ContainerExited && slices.Contains(recorded, backOff)
	})
	require.Len(t, st.IPs, 1)
	last := st.Container("crash")
	assert.EqualValues(t, 3, last.ExitCode)
	assert.Equal(t, "out of luck\n", last.Message)
	assert.True(t, strings.HasPrefix(last.ID, "containerd://"), last.ID)
	var crashes []runtime.ContainerStatus
	for _, c := range st.Containers {
		if c.Name == "crash" {
			crashes = append(crashes, c)
		}
	}
	require.Len(t, crashes, int(last.RestartCount)+1)
	for i, c := range crashes[:len(crashes)-2] {
		assert.GreaterOrEqual(t, c.StartedAt.Sub(crashes[i+1].FinishedAt), 2*time.Second, "restarts after the first are backed off from")
	}
	assert.EqualValues(t, 0, st.Container("web").RestartCount, "the other container is not changed")
	assert.True(t, st.Container("setup").FinishedAt.Before(st.Container("web").StartedAt))

	log := readFile(t, filepath.Join(dir, "pods", "prod_web_"+string(pod.UID), "web", "0.log"))
	for _, line := range []string{"ready", "1", "web", "hello from " + st.IPs[0]} {
		assert.Contains(t, log, " F "+line+"\n")
	}
	links, err := filepath.Glob(filepath.Join(dir, "containers", "web_prod_web-*.log"))
	require.NoError(t, err)
	require.Len(t, links, 1)
	assert.Equal(t, log, readFile(t, links[0]))

	out, err := rt.Exec(t.Context(), st.Container("web").ID, []string{"sh", "-c", "cat /etc/resolv.conf; id -u; exit 4"}, time.Minute)
	require.NoError(t, err)
	assert.EqualValues(t, 4, out.ExitCode)
	assert.Equal(t, "nameserver 192.0.2.53\n0\n", string(out.Stdout))

	health, err := rt.Check(t.Context())
	require.NoError(t, err)
	assert.NoError(t, health.Runtime)
	assert.NoError(t, health.Network)
	listing, err := lab.List(t.Context(), daemon.Endpoint)
	require.NoError(t, err)
	t.Logf("\n%s", listing)

	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
	assert.Equal(t, "bye\n", readFile(t, filepath.Join(data, "made", "bye")))
	st, err = rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	assert.False(t, st.Running())
	assert.EqualValues(t, 0, st.Container("web").ExitCode)

	require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{Keep: func(uid types.UID) bool { return uid != pod.UID }}))
	pods, err := rt.Pods(t.Context())
	require.NoError(t, err)
	assert.Empty(t, pods)
	left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(dir, "root", "pods")}, left, "no logs, no links")
}

// A call that times out because the daemon is slow is repeated, and the pod has exactly
// one container afterwards.
func TestIntegrationADaemonThatHangsMakesNoSecondContainer(t *testing.T) {
	patient, daemon, _, dir := onContainerd(t)
	client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{Timeout: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
	rt, err := cri.New(cri.Config{Name: client.Name, Runtime: client.Runtime, Images: client.Images, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/pods"}})
	require.NoError(t, err)
	pod := podOf(script("web", "while true; do sleep 0.1; done"))
	pod.UID = types.UID(fmt.Sprintf("it-%d", time.Now().UnixNano()))
	failures := map[string]int{}
	end := time.Now().Add(2 * time.Minute)
	for i := 0; ; i++ {
		require.True(t, time.Now().Before(end), "%v", failures)
		if i == 8 {
			rt = patient // a machine that has other things to do may never be quick enough
		}
		done := make(chan error, 1)
		go func() {
			_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			done <- err
		}()
		if i < 8 { // hang at another moment of the start each time
			wait(t, time.Duration(i)*40*time.Millisecond)
			daemon.Pause()
			wait(t, 1200*time.Millisecond)
			daemon.Resume()
		}
		err := <-done
		if err != nil {
			failures[err.Error()]++
			wait(t, 50*time.Millisecond)
		}
		st, statusErr := rt.PodStatus(t.Context(), pod.UID)
		if statusErr != nil {
			continue
		}
		running := 0
		for _, c := range st.Containers {
			if c.State == runtime.ContainerRunning {
				running++
			}
		}
		require.LessOrEqual(t, running, 1) // instances that the daemon failed to start have exited
		if i >= 8 && err == nil && running == 1 {
			break
		}
	}
	t.Logf("failed steps: %v", failures)
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod, GracePeriodSeconds: new(int64(2))}))
}

func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.FailNow()
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
