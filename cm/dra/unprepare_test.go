package dra_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/dra"
)

// dra-2: a driver that has failed must unprepare, also if it was not registered at the next
// attempt.
func TestADriverThatFailedAndWentIsCalledForUnprepare(t *testing.T) {
	w := newWorld(claim("a", "d", "p"))
	m := w.manager(t, nil)
	w.fault = failing("prepare")
	require.Error(t, m.PrepareResources(t.Context(), pod("p", "a")))
	w.fault = returning("prepare", dra.ErrNotRegistered)
	require.ErrorIs(t, m.PrepareResources(t.Context(), pod("p", "a")), dra.ErrNotRegistered)
	w.fault = nil
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))
	assert.Equal(t, []string{"unprepare d a"}, w.took())
}

// dra-2
func TestADriverThatIsNotThereDelaysTermination(t *testing.T) {
	w := newWorld(claim("a", "d1,d2", "p"))
	m := w.manager(t, nil)
	require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
	w.fault = returning("unprepare d1", dra.ErrNotRegistered)
	require.EqualError(t, m.UnprepareResources(t.Context(), "p"), "unprepare dynamic resources: DRA driver d1 is not registered")
	assert.True(t, m.MayHaveResources("p"))
	w.took()
	w.fault = nil
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))
	assert.Equal(t, []string{"unprepare d1 a"}, w.took(), "d2 has unprepared it")
}

// dra-2, dra-13
func TestClaimsOfRemovedPodsAreUnprepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(claim("a", "d", "p"), claim("b", "d", "q"))
		m := w.manager(t, nil)
		require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
		require.NoError(t, m.PrepareResources(t.Context(), pod("q", "b")))
		w.took()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, m.Run(ctx)) })
		time.Sleep(time.Hour)
		assert.Empty(t, w.took(), "no pod is released")
		w.mu.Lock()
		w.fault = failing("unprepare")
		w.mu.Unlock()
		_ = m.Retain(t.Context(), func(uid types.UID) bool { return uid == "q" })
		synctest.Wait()
		assert.True(t, m.MayHaveResources("p"))
		w.mu.Lock()
		w.fault = nil
		w.mu.Unlock()
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"unprepare d a"}, w.took(), "a retry")
		cancel()
		wg.Wait()
		require.ErrorContains(t, m.Run(ctx), "dra: Manager.Run was called before")
	})
}

// dra-11
func TestAnUnpreparedClaimWhoseCheckpointCannotBeWritten(t *testing.T) {
	w := newWorld(claim("a", "d", "p"))
	m := w.manager(t, nil)
	require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
	w.fault = failing("save")
	require.NoError(t, m.UnprepareResources(t.Context(), "p"), "the pod terminates")
	w.fault, w.calls = nil, nil
	m = w.manager(t, nil)
	assert.True(t, m.MayHaveResources("p"), "the old checkpoint")
	_ = m.Retain(t.Context(), func(types.UID) bool { return false })
	m.Reconcile(t.Context())
	assert.Equal(t, []string{"unprepare d a"}, w.took())
	assert.False(t, w.manager(t, nil).MayHaveResources("p"))
}

// dra-2: the driver may have unprepared the claim though its response was lost.
func TestAClaimIsPreparedAgainAfterAFailedUnprepare(t *testing.T) {
	w := newWorld(claim("a", "d", "p", "q"))
	m := w.manager(t, nil)
	require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
	w.fault = failing("unprepare")
	require.Error(t, m.UnprepareResources(t.Context(), "p"))
	w.fault = nil
	w.took()
	require.NoError(t, m.PrepareResources(t.Context(), pod("q", "a")))
	assert.Equal(t, []string{"prepare d a"}, w.took())
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))
	assert.Empty(t, w.took(), "the other pod uses it")
}
