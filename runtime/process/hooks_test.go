//go:build linux || darwin

package process_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/runtime/process"
)

func TestHooksReportEachStartAndExitOnce(t *testing.T) {
	n := newNode(t)
	require.NoError(t, n.Close(t.Context()))
	var mu sync.Mutex // Exited is called by the first goroutine that observes the exit
	var starts []process.StartInfo
	var exits []process.ExitInfo
	hooks := process.Hooks{
		Started: func(i process.StartInfo) { mu.Lock(); starts = append(starts, i); mu.Unlock() },
		Exited:  func(i process.ExitInfo) { mu.Lock(); exits = append(exits, i); mu.Unlock() },
	}
	n.open(process.Config{Hooks: hooks})
	id := n.start(n.sandbox("pod"), sh("app", "kill -TERM $$"))
	n.exited(id)
	require.NoError(t, n.Close(t.Context()))
	n.open(process.Config{Hooks: hooks})
	n.exited(id)

	mu.Lock()
	defer mu.Unlock()
	require.Len(t, starts, 1)
	assert.Equal(t, id, starts[0].ContainerID)
	assert.Positive(t, starts[0].Took)
	assert.NoError(t, starts[0].Err)
	assert.Equal(t, []process.ExitInfo{{ContainerID: id, Code: 143, Signal: 15, Reason: "Error"}}, exits)
}

func TestAStopThatIsCutShortCanBeHurried(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), sh("deaf", "trap '' TERM; echo ready; while :; do sleep 0.01; done"))
	n.logged("pod", "deaf", "ready")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	assert.Equal(t, codes.DeadlineExceeded, status.Code(n.StopContainer(ctx, id, 1000)))

	slow := make(chan error, 1)
	go func() { slow <- n.StopContainer(t.Context(), id, 1000) }()
	require.NoError(t, n.StopContainer(t.Context(), id, 0))
	require.NoError(t, <-slow, "both stops return")
	assert.EqualValues(t, 137, n.status(id).GetExitCode())
}

func TestErrorsOfUnimplementedMethodsContainTheirName(t *testing.T) {
	n := newNode(t)
	ctx := t.Context()
	only := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"UpdateContainerResources":  n.UpdateContainerResources(ctx, "", nil),
		"UpdatePodSandboxResources": only(n.UpdatePodSandboxResources(ctx, nil)),
		"Exec":                      only(n.Exec(ctx, nil)),
		"Attach":                    only(n.Attach(ctx, nil)),
		"PortForward":               only(n.PortForward(ctx, nil)),
		"CheckpointContainer":       n.CheckpointContainer(ctx, nil),
		"CheckpointPod":             n.CheckpointPod(ctx, nil),
		"RestorePod":                only(n.RestorePod(ctx, nil)),
		"ListMetricDescriptors":     only(n.ListMetricDescriptors(ctx)),
		"ListPodSandboxMetrics":     only(n.ListPodSandboxMetrics(ctx)),
		"UpdateRuntimeConfig":       n.UpdateRuntimeConfig(ctx, nil),
		"RuntimeConfig":             only(n.RuntimeConfig(ctx)),
	} {
		assert.Equal(t, codes.Unimplemented, status.Code(err), name)
		assert.ErrorContains(t, err, name+" is not implemented")
	}
}
