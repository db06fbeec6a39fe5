package dra_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/dra"
)

// dra-1, dra-2
func TestClaimsArePreparedInOneCallPerDriver(t *testing.T) {
	w := newWorld(claim("a", "d1", "p"), claim("b", "d1,d2", "p"))
	var operations []string
	m := w.manager(t, func(c *dra.Config) {
		c.Hooks.Operated = func(i dra.OperationInfo) {
			operations = append(operations, fmt.Sprint(i.Type, " ", i.PodUID, " ", i.Err))
		}
	})
	p := pod("p", "a", "b")
	require.NoError(t, m.PrepareResources(t.Context(), p))
	assert.ElementsMatch(t, []string{"prepare d1 a,b", "prepare d2 b"}, w.took())
	assert.Equal(t, []string{"d1/claim=a", "d1/claim=b", "d2/claim=b"}, devicesOf(t, m, p))
	assert.True(t, m.MayHaveResources("p"))
	all, byDriver := m.InUse()
	assert.Equal(t, 2, all)
	assert.Equal(t, map[string]int{"d1": 2, "d2": 1}, byDriver)
	assert.Equal(t, []types.UID{"p"}, m.Pods("d2"))
	require.NoError(t, m.PrepareResources(t.Context(), p), "a new sandbox")
	assert.Empty(t, w.took())

	w.claims = nil // deleted by force
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))
	assert.ElementsMatch(t, []string{"unprepare d1 a,b", "unprepare d2 b"}, w.took())
	assert.False(t, m.MayHaveResources("p"))
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))
	assert.Empty(t, w.took())
	assert.Equal(t, []string{"PrepareResources p <nil>", "PrepareResources p <nil>", "UnprepareResources p <nil>"}, operations)
	require.NoError(t, m.PrepareResources(t.Context(), pod("q")), "without claims")
}

// dra-2
func TestASharedClaimIsPreparedOnceAndUnpreparedWithItsLastPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(claim("a", "d", "p", "q"))
		w.fault = func(ctx context.Context, call string) error {
			if strings.HasPrefix(call, "prepare") {
				time.Sleep(time.Second)
			}
			return nil
		}
		m := w.manager(t, nil)
		var wg sync.WaitGroup
		for _, uid := range []types.UID{"p", "q"} {
			wg.Go(func() { assert.NoError(t, m.PrepareResources(t.Context(), pod(uid, "a"))) })
		}
		wg.Wait()
		assert.Equal(t, []string{"prepare d a"}, w.took())
		require.NoError(t, m.UnprepareResources(t.Context(), "p"))
		assert.Empty(t, w.took())
		assert.Equal(t, []string{"d/claim=a"}, devicesOf(t, m, pod("q", "a")))
		require.NoError(t, m.UnprepareResources(t.Context(), "q"))
		assert.Equal(t, []string{"unprepare d a"}, w.took())
	})
}

// dra-3
func TestAPodWhoseClaimsCannotBePreparedDoesNotStart(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*world)
		err    string
		calls  []string
		holds  bool // drivers may have been called
	}{
		"missing":         {func(w *world) { delete(w.claims, "b") }, `get ResourceClaim ns/b: resourceclaims "b" not found`, nil, false},
		"not reserved":    {func(w *world) { w.claims["b"].Status.ReservedFor = nil }, "pod ns/p (p) is not allowed to use ResourceClaim ns/b (uid-b)", nil, false},
		"another object":  {func(w *world) { w.claims["b"] = claim("a", "d", "p") }, "another object was returned", nil, false},
		"no driver":       {func(w *world) { w.absent["d2"] = true }, "prepare dynamic resources: DRA driver d2 is not registered", nil, false},
		"disk":            {func(w *world) { w.fault = failing("save") }, "save checkpoint: broken", nil, false},
		"driver fails":    {func(w *world) { w.fault = failing("prepare d2 b") }, "NodePrepareResources of driver d2: broken", []string{"prepare d1 a"}, true},
		"claim fails":     {func(w *world) { w.wrong = map[types.UID]dra.Prepared{"uid-a": {Err: errors.New("broken")}} }, "NodePrepareResources of driver d1 failed for ResourceClaim ns/a: broken", nil, true},
		"result missing":  {func(w *world) { w.wrong = map[types.UID]dra.Prepared{} }, "NodePrepareResources of driver d1: no result for ResourceClaim ns/a (uid-a)", nil, true},
		"driver has gone": {func(w *world) { w.fault = returning("prepare d", dra.ErrNotRegistered) }, "DRA driver d1 is not registered", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(claim("a", "d1", "p"), claim("b", "d2", "p"))
			tt.change(w)
			m := w.manager(t, nil)
			p := pod("p", "a", "b")
			err := m.PrepareResources(t.Context(), p)
			require.ErrorContains(t, err, tt.err)
			if tt.calls != nil {
				assert.Equal(t, tt.calls, w.took())
			}
			_, err = m.CDIDevices(t.Context(), p, &p.Spec.Containers[0])
			require.Error(t, err, "no container starts")
			if !tt.holds {
				require.NoError(t, m.UnprepareResources(t.Context(), "p"), "the pod terminates although no driver was called")
				assert.NotContains(t, strings.Join(w.took(), " "), "unprepare")
				return
			}
			assert.True(t, m.MayHaveResources("p"))
			w.fault, w.wrong = nil, nil
			require.NoError(t, m.PrepareResources(t.Context(), p), "a retry")
			assert.Equal(t, []string{"d1/claim=a", "d2/claim=b"}, devicesOf(t, m, p))
			require.NoError(t, m.UnprepareResources(t.Context(), "p"))
			assert.Empty(t, w.state())
		})
	}
}

// dra-1: another driver is not called again, and is not delayed.
func TestADriverThatHangsIsCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(claim("a", "d1,d2", "p"))
		w.fault = func(ctx context.Context, call string) error {
			if strings.HasPrefix(call, "prepare d1") {
				<-ctx.Done()
				return errors.New("rpc error")
			}
			return nil
		}
		m := w.manager(t, nil)
		began := time.Now()
		err := m.PrepareResources(t.Context(), pod("p", "a"))
		require.ErrorContains(t, err, "NodePrepareResources of driver d1: DRA driver d1 has not responded within 45s")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 45*time.Second, time.Since(began))
		assert.Equal(t, []string{"prepare d2 a"}, w.took())
		w.fault = nil
		require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
		assert.Equal(t, []string{"prepare d1 a"}, w.took())
	})
}

// A pod that waits for the claim of another one stops waiting when it is deleted.
func TestWaitingForAClaimEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(claim("a", "d", "p", "q"))
		hang := make(chan struct{})
		w.fault = func(context.Context, string) error { <-hang; return nil }
		m := w.manager(t, nil)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, m.PrepareResources(t.Context(), pod("p", "a"))) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, m.PrepareResources(ctx, pod("q", "a")), context.DeadlineExceeded)
		close(hang)
		wg.Wait()
		require.NoError(t, m.PrepareResources(t.Context(), pod("q", "a")))
	})
}

// dra-7
func TestCallsThatAreNotNecessaryAreSkipped(t *testing.T) {
	c := claim("a", "d", "p")
	c.Status.Allocation.Devices.Results[0].SkipNodeOperations = []resourceapi.SkipNodeOperation{"*"}
	w := newWorld(c)
	w.absent["d"] = true
	var skipped []string
	m := w.manager(t, func(c *dra.Config) {
		c.Hooks.Skipped = func(i dra.SkipInfo) { skipped = append(skipped, i.Driver+" "+i.Method) }
	})
	p := pod("p", "a")
	require.NoError(t, m.PrepareResources(t.Context(), p))
	require.NoError(t, m.PrepareResources(t.Context(), p))
	assert.Empty(t, devicesOf(t, m, p))
	require.NoError(t, m.UnprepareResources(t.Context(), "p"))
	assert.Equal(t, []string{"d NodePrepareResources", "d NodeUnprepareResources"}, skipped)
	assert.Empty(t, w.took())
	assert.False(t, m.MayHaveResources("p"))
}

func TestConfigurationsThatCannotWork(t *testing.T) {
	w := newWorld()
	for want, cfg := range map[string]dra.Config{
		"dra: Config.Claims is nil":                             {Plugins: w, Store: w},
		"dra: Config.Plugins is nil":                            {Claims: w, Store: w},
		"dra: Config.Store is nil":                              {Claims: w, Plugins: w},
		"dra: Config.CallTimeout or Config.Period is negative":  {Claims: w, Plugins: w, Store: w, CallTimeout: -1},
		"dra: Config.CallTimeout or Config.Period is negative ": {Claims: w, Plugins: w, Store: w, Period: -1},
	} {
		_, err := dra.New(cfg)
		require.EqualError(t, err, strings.TrimSpace(want))
	}
}
