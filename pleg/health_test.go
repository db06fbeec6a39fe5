package pleg_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/pleg"
)

func TestHealthIsTheAgeOfTheLastSuccessfulList(t *testing.T) { // pleg-25
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("u", "c")
		n.hang["u"] = true
		n.listErr = errRefused
		g := newGenerator(t, n, nil, pleg.Config{})
		assert.EqualError(t, g.Healthy(), "pleg has yet to be successful")
		require.EqualError(t, g.Relist(t.Context()), "pleg: list pods: refused")
		assert.EqualError(t, g.Healthy(), "pleg has yet to be successful")

		n.do(func() { n.listErr = nil })
		defer run(t, g)()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.NoError(t, g.Healthy(), "a pod that hangs is not a matter of health")

		n.do(func() { n.hangLists = true })
		time.Sleep(3 * time.Minute)
		assert.NoError(t, g.Healthy())
		time.Sleep(time.Second)
		assert.EqualError(t, g.Healthy(), "pleg was last seen active 3m1s ago; threshold is 3m0s")

		n.do(func() { n.hangLists = false })
		time.Sleep(3 * time.Minute) // the hanging list is abandoned after Threshold
		assert.NoError(t, g.Healthy())
	})
}

func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("u", "c")
		n.start("v", "c")
		n.inspectErr["v"] = errRefused
		n.listTakes = 20 * time.Millisecond
		n.inspectTake["u"] = 40 * time.Millisecond
		var relists []pleg.RelistInfo
		var inspects []pleg.InspectInfo
		g := newGenerator(t, n, new(listener), pleg.Config{Parallel: 1, Hooks: pleg.Hooks{
			Relisted:  func(i pleg.RelistInfo) { relists = append(relists, i) },
			Inspected: func(i pleg.InspectInfo) { inspects = append(inspects, i) },
		}})
		began := time.Now()
		require.NoError(t, g.Relist(t.Context()))
		time.Sleep(time.Second)
		n.do(func() { n.listErr = errRefused })
		require.Error(t, g.Relist(t.Context()))
		require.Len(t, relists, 2)
		assert.Equal(t, pleg.RelistInfo{Start: began, Duration: 60 * time.Millisecond,
			Pods: 2, Changed: 2, Inspected: 2, Events: 1, Stale: 1, Period: time.Second, Confidence: "none"}, relists[0])
		assert.Equal(t, pleg.RelistInfo{Start: began.Add(1060 * time.Millisecond), Duration: 20 * time.Millisecond,
			Interval: 1060 * time.Millisecond, Stale: 1, Period: time.Second, Confidence: "none", Err: relists[1].Err}, relists[1])
		assert.ErrorIs(t, relists[1].Err, errRefused)
		require.Len(t, inspects, 2)
		assert.ErrorIs(t, inspects[0].Err, errRefused, "v is listed first: it is newer")
		assert.Equal(t, pleg.InspectInfo{UID: "u", Duration: 40 * time.Millisecond}, inspects[1])
	})
}

func TestRelistHealthString(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		health := func() string { return w.Health().String() }
		assert.Equal(t, "pleg has yet to be successful; no events; 0 pods", health())
		w.do(func() { w.listErr = errRefused })
		stop := run(t, w.Generator)
		time.Sleep(betweenLists)
		assert.Equal(t, "pleg has yet to be successful; last list failed: pleg: list pods: refused; no events; 0 pods", health())
		assert.ErrorIs(t, w.Healthy(), errRefused)

		w.do(func() { w.listErr, w.inspectErr["u"] = nil, errRefused })
		w.start("u", "c")
		w.start("v", "c")
		time.Sleep(2 * time.Second)
		assert.Equal(t, "healthy; listed 1.5s ago, next after 5m0s; events trusted; inspection of 1 of 2 pods failed", health())
		w.do(func() { clear(w.inspectErr) })
		w.settle()
		assert.Equal(t, "healthy; listed 10s ago, next after 5m0s; events trusted; 2 pods", health())

		w.do(func() { w.hangLists = true })
		time.Sleep(5 * time.Minute)
		h := w.Health()
		assert.NoError(t, h.Err)
		assert.Equal(t, 10*time.Second, h.Listing, "that it hangs shows long before it is given up")
		assert.Equal(t, "healthy; a list has been in progress for 10s; listed 5m10s ago, next after 5m0s; events trusted; 2 pods", health())
		w.break1()
		synctest.Wait()
		assert.Contains(t, health(), "event stream broken (refused)")
		stop()
	})
}

// Long periods between lists are healthy, and do not hide failures.
func TestTheThresholdAllowsForThePeriod(t *testing.T) { // pleg-25, pleg-33
	for name, tc := range map[string]struct {
		happen func(*watched)
		after  time.Duration // from then on until Healthy fails
		age    string
	}{
		"lists hang, from the next on":      {func(*watched) {}, 290*time.Second + 3*time.Minute - time.Second, "7m59s"},
		"hints break, and the list is hung": {func(w *watched) { w.break1() }, 3*time.Minute - time.Second, "3m9s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatched(t, pleg.Config{})
				defer run(t, w.Generator)()
				w.settle()
				w.do(func() { w.hangLists = true })
				tc.happen(w)
				time.Sleep(tc.after)
				assert.NoError(t, w.Healthy())
				time.Sleep(time.Second)
				assert.ErrorContains(t, w.Healthy(), "threshold is "+tc.age)
			})
		})
	}
}
