package agent_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/sim"
)

// A container whose process is killed is restarted, and counted once, with and without
// a runtime that emits events. The latency is logged, together with the runtime's part
// of it.
func TestIntegrationAKilledContainerComesBack(t *testing.T) {
	lab.Need(t, "containerd")
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close(context.Background())) }()
	dir := t.TempDir()
	rt, err := cri.New(cri.Config{
		Name: client.Name, Runtime: client.Runtime, Images: client.Images,
		Dirs:       cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"},
		Containers: cri.ContainerConfig{Backoff: plan.BackoffConfig{Initial: time.Millisecond, Factor: 1}},
	})
	require.NoError(t, err)
	version, err := client.Runtime.Version(t.Context(), "v1")
	require.NoError(t, err)
	if strings.HasPrefix(strings.TrimPrefix(version.RuntimeVersion, "v"), "1.") {
		t.Run("a containerd without events", func(t *testing.T) { killed(t, client, rt, "victim", 10) })
		return
	}
	t.Run("events on", func(t *testing.T) { killed(t, client, rt, "victim-on", 50) })
	t.Run("events off", func(t *testing.T) { killed(t, client, withoutEvents{rt, rt, rt}, "victim-off", 50) })
}

// withoutEvents is a runtime without a Watcher.
type withoutEvents struct {
	runtime.Runtime
	runtime.Checker
	runtime.GarbageCollector
}

// Unwrap hides the other interfaces.
func (withoutEvents) Unwrap() any { return nil }

func killed(t *testing.T, client *remote.Client, rt runtime.Runtime, victim string, kills int32) {
	random := seedrun.Rand(t)
	node, err := sim.NewNode(sim.NodeConfig{Runtime: rt})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()

	pod := manifest.Default(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: victim, Namespace: "default", UID: types.UID("uid-" + victim)},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{Name: "c0", Image: lab.Busybox}}},
	})
	pod.Spec.HostNetwork = true
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	pod.Spec.Containers[0].Command = []string{"sleep", "3600"}
	node.Set(pod)
	counted := func(restarts int32) func(v1.PodStatus) bool {
		return func(s v1.PodStatus) bool {
			return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].RestartCount >= restarts && s.ContainerStatuses[0].State.Running != nil
		}
	}
	status, err := node.Wait(ctx, pod.UID, counted(0))
	require.NoError(t, err)

	var back, sunk []time.Duration
	for n := range kills {
		time.Sleep(time.Duration(random.Int64N(int64(time.Second)))) // at any moment between two lists
		before := status.ContainerStatuses[0]
		pid := pidOf(t, client, before.ContainerID)
		begun := time.Now()
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		status, err = node.Wait(ctx, pod.UID, counted(n+1))
		require.NoError(t, err)
		sunk = append(sunk, time.Since(begun))
		now := status.ContainerStatuses[0]
		inspected, err := client.Runtime.ContainerStatus(ctx, bareID(now.ContainerID), false)
		require.NoError(t, err)
		back = append(back, time.Unix(0, inspected.Status.StartedAt).Sub(begun))
		assert.Equal(t, n+1, now.RestartCount)
		require.NotNil(t, now.LastTerminationState.Terminated)
		assert.Equal(t, before.ContainerID, now.LastTerminationState.Terminated.ContainerID)
		assert.EqualValues(t, 137, now.LastTerminationState.Terminated.ExitCode)
	}
	slices.Sort(back)
	slices.Sort(sunk)
	t.Logf("%d kills; to the start of the next instance: p50 %v, p99 %v; to its status in the sink: p50 %v, p99 %v",
		kills, at(back, 50), at(back, 99), at(sunk, 50), at(sunk, 99))
	node.Set()
	require.Eventually(t, func() bool { return len(node.States()) == 0 }, time.Minute, 50*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}

// at returns a percentile of sorted durations.
func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Round(100 * time.Microsecond)
}

func bareID(id string) string { return id[strings.Index(id, "://")+3:] }

// pidOf returns the process ID of a container, as reported by containerd.
func pidOf(t *testing.T, client *remote.Client, id string) int {
	t.Helper()
	answer, err := client.Runtime.ContainerStatus(t.Context(), bareID(id), true)
	require.NoError(t, err)
	var info struct{ PID int }
	require.NoError(t, json.Unmarshal([]byte(answer.Info["info"]), &info))
	require.Positive(t, info.PID)
	return info.PID
}
