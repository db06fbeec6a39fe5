package podwing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
	"github.com/kubeparts/kubeparts/shutdown"
)

func TestShutdownGroups(t *testing.T) { // sh-2, sh-3
	for lines, want := range map[string][]shutdown.Group{
		"":                           nil,
		"shutdownGracePeriod: 30s\n": {{Priority: 0, Period: 30 * time.Second}, {Priority: 2_000_000_000}},
		"shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n": {
			{Priority: 0, Period: 20 * time.Second}, {Priority: 2_000_000_000, Period: 10 * time.Second},
		},
		"shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 5}, {priority: 100, shutdownGracePeriodSeconds: 7}]\n": {
			{Priority: 0, Period: 5 * time.Second}, {Priority: 100, Period: 7 * time.Second},
		},
	} {
		got, err := shutdownGroups(wingtest.Decode(t, lines))
		require.NoError(t, err, lines)
		assert.Equal(t, want, got, lines)
	}
	_, err := shutdownGroups(wingtest.Decode(t, "shutdownGracePeriodCriticalPods: 10s\n"))
	assert.ErrorContains(t, err, "shutdownGracePeriod, shutdownGracePeriodCriticalPods: ")
}

func TestTriggersRequireAGracePeriod(t *testing.T) {
	cfg := wingtest.Standalone(t, "")
	cfg.Host.Shutdown.Triggers = []shutdown.Trigger{new(shutdown.Manual)}
	_, err := newShutdown(wingtest.Base(t, cfg), nil)
	require.ErrorContains(t, err, "pods have no time to terminate")
	cfg.Configuration = wingtest.Decode(t, "shutdownGracePeriod: 30s\n")
	_, err = newShutdown(wingtest.Base(t, cfg), nil)
	require.NoError(t, err)
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, stores.Until(t.Context(), func() bool { return time.Since(start) > time.Minute }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, stores.Until(ctx, func() bool { return false }), context.DeadlineExceeded)
	})
}
