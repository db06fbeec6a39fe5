package podworker_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/runonce/runoncetest"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

func newIdleWorkers(t *testing.T) *podworker.Workers {
	t.Helper()
	generator, err := pleg.New(pleg.Config{Runtime: new(runtimetest.Runtime)})
	require.NoError(t, err)
	workers, err := podworker.New(podworker.Config{Handler: watchful{}, StatusCache: generator})
	require.NoError(t, err)
	return workers
}

func TestALoopRunsOnce(t *testing.T) {
	loop, err := podworker.NewLoop(podworker.LoopConfig{Workers: newIdleWorkers(t)})
	require.NoError(t, err)
	runoncetest.Check(t, "podworker: Loop", loop.Run)
}

func TestALoopNeedsWorkersThatDidNotRun(t *testing.T) {
	workers := newIdleWorkers(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, workers.Run(ctx))
	loop, err := podworker.NewLoop(podworker.LoopConfig{Workers: workers})
	require.NoError(t, err)
	assert.EqualError(t, loop.Run(t.Context()), "podworker: Workers.Run was called before")
}
