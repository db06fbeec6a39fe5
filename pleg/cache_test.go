package pleg_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestGetOfAnUnknownPodIsEmpty(t *testing.T) { // cache-1
	g := newGenerator(t, newNode(), nil, pleg.Config{})
	require.NoError(t, g.Relist(t.Context()))
	status, err := g.Get("u")
	require.NoError(t, err)
	assert.Equal(t, "u", string(status.UID))
	assert.Empty(t, status.Containers)
	assert.Empty(t, g.Pods())
}

// Otherwise a caller could conclude that nothing runs.
func TestGetBeforeTheFirstRelistIsAnError(t *testing.T) {
	n := newNode()
	n.start("u", "c")
	g := newGenerator(t, n, nil, pleg.Config{})
	status, err := g.Get("u")
	require.EqualError(t, err, "pleg: pod u: the runtime has not been listed yet")
	assert.Equal(t, &runtime.PodStatus{UID: "u"}, status)
	require.NoError(t, g.Relist(t.Context()))
	status, err = g.Get("u")
	require.NoError(t, err)
	assert.True(t, status.Running())
}

func TestGetNewerThanReadsAtOnce(t *testing.T) { // cache-2, cache-3
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("u", "c")
		g := newGenerator(t, n, nil, pleg.Config{})
		defer run(t, g)()
		time.Sleep(1500 * time.Millisecond)
		began := time.Now()

		n.exit("u", "c")
		status, err := g.GetNewerThan(t.Context(), "u", time.Now())
		require.NoError(t, err)
		assert.Equal(t, runtime.ContainerExited, status.Containers[0].State)

		// All in one instant: the read above is as new as requested, and yet outdated.
		n.remove("u", "c")
		status, err = g.GetNewerThan(t.Context(), "u", time.Now())
		require.NoError(t, err)
		assert.Equal(t, &runtime.PodStatus{UID: "u", ObservedAt: began}, status)

		status, err = g.GetNewerThan(t.Context(), "unknown", time.Now())
		require.NoError(t, err)
		assert.Equal(t, &runtime.PodStatus{UID: "unknown", ObservedAt: began}, status)
		assert.Zero(t, time.Since(began))
		assert.Len(t, n.listed(), 2)
	})
}

func TestGetNewerThanDoesNotReadCachedStatuses(t *testing.T) { // cache-2, cache-6, pleg-22
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("u", "c")
		g := newGenerator(t, n, nil, pleg.Config{})
		defer run(t, g)()
		time.Sleep(2500 * time.Millisecond)
		for _, uid := range []types.UID{"u", "unknown"} {
			status, err := g.GetNewerThan(t.Context(), uid, time.Now().Add(-time.Second))
			require.NoError(t, err)
			assert.Equal(t, time.Now().Add(-time.Second/2), status.ObservedAt, "a list confirms the inspection")
		}
		assert.Equal(t, 1, n.inspected("u"))
		assert.Zero(t, n.inspected("unknown"))
	})
}

func TestGetNewerThanWaitsForAFutureTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("u", "c")
		g := newGenerator(t, n, nil, pleg.Config{Period: time.Hour})
		defer run(t, g)()
		synctest.Wait()
		for _, uid := range []types.UID{"u", "unknown"} {
			began := time.Now()
			status, err := g.GetNewerThan(t.Context(), uid, began.Add(3*time.Second))
			require.NoError(t, err)
			assert.Equal(t, began.Add(3*time.Second), status.ObservedAt, "and not for the next list")
			assert.Equal(t, 3*time.Second, time.Since(began))
		}
		assert.Equal(t, 2, n.inspected("u"), "it is not read over and over")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := g.GetNewerThan(ctx, "u", time.Now().Add(time.Minute))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = g.PodsNewerThan(ctx, time.Now().Add(time.Minute))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestGetNewerThanEndsWithItsContext(t *testing.T) { // lq-2, cache-4
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("u", "c")
		n.hang["u"] = true
		g := newGenerator(t, n, nil, pleg.Config{})
		stop := run(t, g)
		time.Sleep(time.Second / 2)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		_, err := g.GetNewerThan(ctx, "u", time.Now())
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err, "pleg: wait for the status of pod u: context deadline exceeded")
		assert.Equal(t, 2*time.Second, time.Since(began))
		stop()

		// Also if no Run is active.
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = g.GetNewerThan(ctx, "v", time.Now())
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestManyWaitersShareOneRead(t *testing.T) { // cache-5, cache-7
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("u", "c")
		g := newGenerator(t, n, nil, pleg.Config{})
		defer run(t, g)()
		time.Sleep(time.Second / 2)
		n.do(func() { n.inspectTake["u"] = 100 * time.Millisecond })
		g.RequestRelist("u")
		synctest.Wait() // in progress: too early for the waiters
		began := time.Now()
		woken := make(chan error)
		for range 100 {
			go func() {
				_, err := g.GetNewerThan(t.Context(), "u", began)
				woken <- err
			}()
		}
		for range 100 {
			assert.NoError(t, <-woken)
		}
		assert.Equal(t, 200*time.Millisecond, time.Since(began))
		assert.Equal(t, 3, n.inspected("u"))
	})
}

func TestAnErrorIsNotReturnedToALaterCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("u", "c")
		n.inspectErr["u"] = errRefused
		g := newGenerator(t, n, nil, pleg.Config{Period: time.Hour})
		defer run(t, g)()
		time.Sleep(time.Second)
		_, err := g.GetNewerThan(t.Context(), "u", time.Now())
		assert.ErrorIs(t, err, errRefused)
		n.do(func() { clear(n.inspectErr) })
		status, err := g.GetNewerThan(t.Context(), "u", time.Now().Add(-time.Minute))
		require.NoError(t, err)
		assert.Len(t, status.Containers, 1)
	})
}

func TestAPodKeepsItsIPs(t *testing.T) { // pleg-23
	for name, tc := range map[string]struct {
		sandbox runtime.ContainerState
		ips     []string
		want    []string
	}{
		"not ready, none listed":    {runtime.ContainerExited, nil, []string{"10.0.0.1"}},
		"ready, and has none":       {runtime.ContainerRunning, nil, nil},
		"not ready, another listed": {runtime.ContainerExited, []string{"10.0.0.2"}, []string{"10.0.0.2"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode()
			n.start("u", "sb")
			n.pods["u"].IPs = []string{"10.0.0.1"}
			g := newGenerator(t, n, nil, pleg.Config{})
			require.NoError(t, g.Relist(t.Context()))
			n.set("u", "sb", tc.sandbox)
			n.pods["u"].IPs = tc.ips
			g.RequestReinspect("u")
			require.NoError(t, g.Relist(t.Context()))
			status, err := g.Get("u")
			require.NoError(t, err)
			assert.Equal(t, tc.want, status.IPs)
		})
	}
}

func TestCallersHaveTheirOwnStatus(t *testing.T) { // cache-9, lq-22
	n := newNode()
	n.start("u", "c")
	g := newGenerator(t, n, nil, pleg.Config{})
	require.NoError(t, g.Relist(t.Context()))
	status, err := g.Get("u")
	require.NoError(t, err)
	status.IPs = []string{"10.0.0.1"}
	again, err := g.Get("u")
	require.NoError(t, err)
	assert.Empty(t, again.IPs)
}

func TestNoStateIsKeptForRemovedPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		var last pleg.RelistInfo
		g := newGenerator(t, n, l, pleg.Config{Hooks: pleg.Hooks{Relisted: func(i pleg.RelistInfo) { last = i }}})
		defer run(t, g)()
		for i := range 50 {
			uid := types.UID(fmt.Sprint("u", i))
			n.start(uid, "c")
			n.do(func() {
				if i%2 == 1 {
					n.inspectErr[uid] = errRefused
				}
			})
			time.Sleep(1100 * time.Millisecond)
			n.remove(uid, "c")
			g.RequestRelist(types.UID(fmt.Sprint("never", i)))
			g.RequestReinspect(types.UID(fmt.Sprint("never", i)))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Zero(t, pleg.Records(g))
		assert.Zero(t, last.Stale)
	})
}

type badAnswers struct {
	pods   []*runtime.Pod
	status *runtime.PodStatus
}

func (b *badAnswers) Pods(context.Context) ([]*runtime.Pod, error) { return b.pods, nil }
func (b *badAnswers) PodStatus(context.Context, types.UID) (*runtime.PodStatus, error) {
	return b.status, nil
}

func TestBadAnswersOfTheRuntimeAreErrors(t *testing.T) {
	b := &badAnswers{pods: []*runtime.Pod{nil, {Name: "no UID"}, pod("c:running"), pod("c:exited"), pod()}}
	l := new(listener)
	g := newGenerator(t, b, l, pleg.Config{})
	require.NoError(t, g.Relist(t.Context()))
	_, err := g.Get("u")
	assert.EqualError(t, err, "pleg: inspect pod u: the runtime returned no status")

	b.status = &runtime.PodStatus{UID: "v"}
	require.NoError(t, g.Relist(t.Context()))
	_, err = g.Get("u")
	assert.EqualError(t, err, "pleg: inspect pod u: the runtime returned pod v")
	assert.Empty(t, l.take())
	assert.Len(t, g.Pods(), 1, "the first of a UID counts")

	b.status = &runtime.PodStatus{Containers: []runtime.ContainerStatus{{ID: "c", State: runtime.ContainerRunning}}}
	require.NoError(t, g.Relist(t.Context()))
	status, err := g.Get("u")
	require.NoError(t, err)
	assert.EqualValues(t, "u", status.UID)
	assert.Equal(t, []string{"u ContainerStarted c"}, l.take())
}

func TestWaitersAreNotifiedOfARemovedPod(t *testing.T) { // cache-8: the kubelet wakes no waiter
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("u", "c")
		n.hang["u"] = true
		g := newGenerator(t, n, nil, pleg.Config{})
		defer run(t, g)()
		time.Sleep(betweenLists)
		go func() {
			time.Sleep(time.Second / 4)
			n.remove("u", "c") // the next list shows it
		}()
		began := time.Now()
		status, err := g.GetNewerThan(t.Context(), "u", began)
		require.NoError(t, err)
		assert.Empty(t, status.Containers)
		assert.Equal(t, betweenLists, time.Since(began))
	})
}
