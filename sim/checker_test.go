package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/sim"
)

// A Checker evaluates entries that are not of a run.
func TestAChecker(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}, Spec: v1.PodSpec{
		RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{Name: "main", Image: "nginx"}},
	}}
	sim.SetIncarnation(pod, 1)
	c := sim.NewChecker(sim.Invariants(), true, false)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	add := func(at time.Duration, e sim.Entry) []sim.Violation {
		e.At, e.UID = at, "1"
		return c.Add(e, start.Add(at))
	}
	instance := func(id string, count int32) *runtime.ContainerStatus {
		return &runtime.ContainerStatus{ID: id, Name: "main", State: runtime.ContainerRunning, RestartCount: count, Image: "nginx"}
	}
	require.Empty(t, add(0, sim.Entry{Kind: sim.AgentStarted, Agent: 1}))
	require.Empty(t, add(0, sim.Entry{Kind: sim.PodAdded, Object: pod}))
	require.Empty(t, add(time.Second, sim.Entry{Kind: sim.Started, Container: instance("a", 0)}))
	got := add(2*time.Second, sim.Entry{Kind: sim.Started, Container: instance("b", 1)})
	require.Len(t, got, 1)
	assert.Equal(t, sim.Violation{At: 2 * time.Second, Invariant: "one-live-instance", UID: "1", Message: "b was started while a runs"}, got[0])

	// An exit code of 143 alone is no stop.
	exited := instance("b", 1)
	exited.State, exited.ExitCode, exited.SandboxID = runtime.ContainerExited, 143, "s"
	add(3*time.Second, sim.Entry{Kind: sim.SandboxReady, Sandbox: &runtime.SandboxStatus{ID: "s", State: runtime.SandboxReady}})
	assert.Empty(t, add(3*time.Second, sim.Entry{Kind: sim.Exited, Container: exited}))
	got = add(3*time.Second, sim.Entry{Kind: sim.Exited, Container: exited, Stopped: true})
	require.Len(t, got, 1)
	assert.Equal(t, "healthy-not-killed", got[0].Invariant)
}
