package status_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// agent is a manager over the snapshots of dir, without a status from a source.
func agent(t *testing.T, dir string, probed map[string]runtime.ProbeStatus) (*status.Manager, *status.Snapshot) {
	snapshots, broken, err := status.OpenSnapshot(dir)
	require.NoError(t, err)
	require.Empty(t, broken)
	cfg := status.Config{Sink: snapshots, Restore: snapshots.Status}
	if probed != nil {
		cfg.Facts = append(cfg.Facts, func(f *status.Facts) { f.Probes = probed })
	}
	m, err := status.New(cfg)
	require.NoError(t, err)
	return m, snapshots
}

func TestASnapshotOutlivesTheAgent(t *testing.T) { // virtual-kubelet #762, st-19
	dir := filepath.Join(t.TempDir(), "statuses")
	job, web := named(podOf(v1.RestartPolicyNever, "a"), "job"), named(podOf(v1.RestartPolicyAlways, "a"), "web")
	web.Spec.Containers[0].ReadinessProbe = &v1.Probe{}

	m, _ := agent(t, dir, map[string]runtime.ProbeStatus{"a": {Readiness: runtime.ProbeSuccess}})
	m.Report(job, stopped(exitedC("a", 0, 0)), nil, runtime.Termination{})
	serving := m.Report(web, seen(runningC("a", 3)), nil, runtime.Termination{})
	require.True(t, status.IsReady(&serving))
	require.NoError(t, m.Flush(t.Context()))

	// The agent restarts; the job's containers are gone, and no probe of
	// the other has a result yet.
	m, _ = agent(t, dir, map[string]runtime.ProbeStatus{})
	over := m.Report(job, &runtime.PodStatus{}, nil, runtime.Termination{})
	assert.Equal(t, v1.PodSucceeded, over.Phase, "not run again")
	assert.Zero(t, over.ContainerStatuses[0].State.Terminated.ExitCode)
	now := m.Report(web, seen(runningC("a", 3)), nil, runtime.Termination{})
	assert.True(t, status.IsReady(&now), "no pod leaves service because the agent was restarted (#100277)")
	assert.Equal(t, serving.StartTime.Time.UTC(), now.StartTime.Time.UTC())

	// And vice versa: a container that was not ready is not ready.
	unready := map[string]runtime.ProbeStatus{"a": {Readiness: runtime.ProbeFailure}}
	m, _ = agent(t, dir, unready)
	m.Report(web, seen(runningC("a", 3)), nil, runtime.Termination{})
	require.NoError(t, m.Flush(t.Context()))
	m, s := agent(t, dir, map[string]runtime.ProbeStatus{})
	now = m.Report(web, seen(runningC("a", 3)), nil, runtime.Termination{})
	assert.False(t, status.IsReady(&now), "#135795")

	require.NoError(t, s.Retain(t.Context(), func(uid types.UID) bool { return uid == web.UID }))
	_, ok := s.Status(job.UID)
	assert.False(t, ok)
	forget(m, web.UID)
	require.NoError(t, m.Flush(t.Context()))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestTheSourcesStatusTakesPrecedenceOverASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := podOf(v1.RestartPolicyAlways, "a")
		pod.Status = status.Compute(status.Facts{Pod: pod, Observed: seen(runningC("a", 7)), Now: t0})
		m := started(t, status.Config{Sink: status.Tee(), Restore: func(types.UID) (v1.PodStatus, bool) {
			return v1.PodStatus{Phase: v1.PodFailed, StartTime: new(pod.Status.StartTime.Rfc3339Copy())}, true
		}})
		s := m.Report(pod, seen(runningC("a", 7)), nil, runtime.Termination{})
		assert.Equal(t, v1.PodRunning, s.Phase)
		time.Sleep(time.Second)
	})
}

func TestABrokenSnapshotIsReportedAndAffectsNoOther(t *testing.T) {
	dir := t.TempDir()
	m, _ := agent(t, dir, nil)
	good, bad := named(podOf(v1.RestartPolicyAlways, "a"), "good"), named(podOf(v1.RestartPolicyAlways, "a"), "bad")
	bad.UID = "../../etc/passwd"
	m.Report(good, seen(runningC("a", 0)), nil, runtime.Termination{})
	m.Report(bad, seen(runningC("a", 0)), nil, runtime.Termination{})
	require.NoError(t, m.Flush(t.Context()))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2, "no UID leads out of the directory")
	for _, f := range files {
		if f.Name() != string(good.UID)+".json" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name()), []byte(`{"checksum":"0","data":{}}`), 0o600))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.json.tmp"), nil, 0o600))

	s, broken, err := status.OpenSnapshot(dir)
	require.NoError(t, err)
	require.Len(t, broken, 1)
	assert.ErrorContains(t, broken[0], dir)
	_, ok := s.Status(good.UID)
	assert.True(t, ok)

	_, _, err = status.OpenSnapshot("")
	assert.Error(t, err)
	_, _, err = status.OpenSnapshot(filepath.Join(dir, "README"))
	assert.ErrorContains(t, err, "README")
}

// The first status of a pod contains nothing that the next process does not know, and is not
// worth a file; a later one is, whatever it is.
func TestAPodThatHasNotStartedHasNoFile(t *testing.T) {
	dir := t.TempDir()
	s, _, err := status.OpenSnapshot(dir)
	require.NoError(t, err)
	pod := named(podOf(v1.RestartPolicyAlways, "a"), "web")
	waiting := v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	pending := func(c v1.ContainerStatus) v1.PodStatus {
		return v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{c}}
	}
	files := func() int {
		list, err := os.ReadDir(dir)
		require.NoError(t, err)
		return len(list)
	}
	first := pending(v1.ContainerStatus{State: waiting})
	require.NoError(t, s.UpdatePodStatus(t.Context(), pod, first))
	assert.Zero(t, files())
	now, ok := s.Status(pod.UID)
	assert.True(t, ok)
	assert.Equal(t, first, now)

	for name, worth := range map[string]v1.PodStatus{
		"created":      pending(v1.ContainerStatus{State: waiting, ContainerID: "containerd://1"}),
		"restarted":    pending(v1.ContainerStatus{State: waiting, RestartCount: 1}),
		"terminated":   pending(v1.ContainerStatus{State: waiting, LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1}}}),
		"runs":         pending(v1.ContainerStatus{State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}),
		"init of many": {Phase: v1.PodPending, InitContainerStatuses: []v1.ContainerStatus{{State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}}}},
		"rejected":     {Phase: v1.PodFailed, Reason: "OutOfcpu"},
		"running":      {Phase: v1.PodRunning},
	} {
		pod := named(podOf(v1.RestartPolicyAlways, "a"), "pod")
		before := files()
		require.NoError(t, s.UpdatePodStatus(t.Context(), pod, worth))
		assert.Equal(t, before+1, files(), name)
		require.NoError(t, s.UpdatePodStatus(t.Context(), pod, first), "the file would have another status")
		again, broken, err := status.OpenSnapshot(dir)
		require.NoError(t, err)
		require.Empty(t, broken)
		now, _ := again.Status(pod.UID)
		assert.Equal(t, first, now, name)
		require.NoError(t, s.DeletePod(t.Context(), pod))
	}
}

func TestPruneMayCallTheSnapshot(t *testing.T) {
	s, _, err := status.OpenSnapshot(t.TempDir())
	require.NoError(t, err)
	for _, name := range []string{"failed", "running"} {
		pod := named(podOf(v1.RestartPolicyAlways, "a"), name)
		phase := map[string]v1.PodPhase{"failed": v1.PodFailed, "running": v1.PodRunning}[name]
		require.NoError(t, s.UpdatePodStatus(t.Context(), pod, v1.PodStatus{Phase: phase}))
	}
	require.NoError(t, s.Retain(t.Context(), func(uid types.UID) bool {
		st, ok := s.Status(uid)
		return ok && st.Phase == v1.PodRunning
	}))
	_, failed := s.Status("uid-failed")
	_, running := s.Status("uid-running")
	assert.False(t, failed)
	assert.True(t, running)
}
