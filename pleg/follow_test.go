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
)

// follow makes l follow g, and returns the function that ends that.
func follow(t *testing.T, g *pleg.Generator, handle func(pleg.Event)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Follow(ctx, handle) }()
	return func() {
		cancel()
		assert.NoError(t, <-done)
	}
}

// For the race detector: Follow is called while Run starts.
func TestFollowersComeWhileARunBegins(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			n := newNode()
			n.start("u", "c1")
			g := newGenerator(t, n, nil, pleg.Config{})
			l := new(listener)
			stopFollower, stop := follow(t, g, l.handle), run(t, g)
			time.Sleep(time.Second)
			synctest.Wait()
			assert.Len(t, l.take(), 1)
			stop()
			stopFollower()
		})
	}
}

func TestEachFollowerHasItsOwnPosition(t *testing.T) { // pleg-9
	synctest.Test(t, func(t *testing.T) {
		n, main, slow, late := newNode(), new(listener), new(listener), new(listener)
		n.start("u", "c1")
		g := newGenerator(t, n, main, pleg.Config{})
		stopSlow := follow(t, g, func(e pleg.Event) { time.Sleep(time.Minute); slow.handle(e) })
		defer run(t, g)()
		time.Sleep(1500 * time.Millisecond)
		n.exit("u", "c1")
		n.start("v", "c1")
		time.Sleep(time.Second)
		n.start("u", "c2")
		n.remove("v", "c1")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, 5+1, len(main.take()), "no other is delayed: c1 twice, c2, v's c1 three times")

		stopLate := follow(t, g, late.handle)
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerDied c1", "u ContainerStarted c2"}, late.take(), "it begins with the current state")
		stopLate()

		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerStarted c1", "u ContainerDied c1", "u ContainerStarted c2"}, slow.take(), "containers that came and went meanwhile are not reported")
		n.exit("u", "c2")
		time.Sleep(2 * time.Minute)
		stopSlow()
		assert.Equal(t, []string{"u ContainerDied c2"}, slow.take())
		assert.Empty(t, late.take(), "it has been removed")
		assert.Equal(t, 1, pleg.Followers(g))
	})
}

func TestAFollowerGetsReinspectionsToo(t *testing.T) { // pleg-20
	synctest.Test(t, func(t *testing.T) {
		n, main, other := newNode(), new(listener), new(listener)
		n.start("u", "c")
		g := newGenerator(t, n, main, pleg.Config{})
		defer run(t, g)()
		defer follow(t, g, other.handle)()
		time.Sleep(betweenLists)
		main.take()
		other.take()
		g.RequestReinspect("u")
		synctest.Wait()
		assert.Equal(t, []string{"u PodSync"}, main.take())
		assert.Equal(t, []string{"u PodSync"}, other.take())
	})
}

func TestFollowNeedsAHandle(t *testing.T) {
	g := newGenerator(t, newNode(), nil, pleg.Config{})
	assert.EqualError(t, g.Follow(t.Context(), nil), "pleg: the handle of Follow is nil")
}

// A follower that never returns keeps the events it was given, and one mark per pod
// with unreported changes, not more.
func TestTheBacklogOfAFollowerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		g := newGenerator(t, n, l, pleg.Config{})
		release := make(chan struct{})
		stop := follow(t, g, func(pleg.Event) { <-release })
		defer run(t, g)()
		n.start("stays", "c")
		time.Sleep(1500 * time.Millisecond)
		for i := range 100 {
			uid := types.UID(fmt.Sprint("u", i%3))
			n.start(uid, fmt.Sprint("c", i))
			time.Sleep(time.Second)
			n.remove(uid, fmt.Sprint("c", i))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		assert.Equal(t, 1, pleg.Records(g), "records do not wait for followers")
		assert.LessOrEqual(t, pleg.Owed(g), 1+4, "one is up to date, the other is owed three pods")
		close(release)
		synctest.Wait()
		assert.Equal(t, 2, pleg.Owed(g), "both know of the pod that stays")
		stop()
	})
}

func TestAPinnedPodIsReadOnce(t *testing.T) { // pleg-32
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		w.start("u", "c0")
		defer run(t, w.Generator)()
		time.Sleep(betweenLists)
		w.l.take()
		n := w.inspected("u")

		release := w.Pin("u")
		for i := range 10 {
			w.hinted("u", func() { w.start("u", fmt.Sprint("c", i)) })
		}
		w.RequestRelist("u")
		synctest.Wait()
		assert.Equal(t, n, w.inspected("u"))
		assert.Empty(t, w.l.take())
		release()
		release()
		synctest.Wait()
		assert.Equal(t, n, w.inspected("u"), "events that are on their way are read as well")
		w.hinted("u", func() { w.start("u", "c10") })
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, n+1, w.inspected("u"))
		assert.Len(t, w.l.take(), 10)

		// Without collected changes the pin ends at once.
		w.Pin("u")()
		w.hinted("u", func() { w.start("u", "c11") })
		synctest.Wait()
		assert.Equal(t, n+2, w.inspected("u"))
		assert.Len(t, w.l.take(), 1)

		// Waiters do not wait for the release.
		release = w.Pin("u")
		w.exit("u", "c1")
		status, err := w.GetNewerThan(t.Context(), "u", time.Now())
		require.NoError(t, err)
		assert.Equal(t, time.Now(), status.ObservedAt)
		release()

		// Pins of unknown pods leave nothing behind.
		w.Pin("unknown")()
		synctest.Wait()
		assert.Equal(t, 1, pleg.Records(w.Generator))
	})
}

func TestAPodThatIsPinnedForLongIsReadOncePerPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{Period: time.Minute})
		w.start("u", "c0")
		defer run(t, w.Generator)()
		time.Sleep(betweenLists)
		w.l.take()
		n := w.inspected("u")
		release, another := w.Pin("u"), w.Pin("u")
		for i := range 600 {
			w.hinted("u", func() { w.start("u", fmt.Sprint("c", i)) })
			time.Sleep(time.Second)
		}
		assert.InDelta(t, n+10, w.inspected("u"), 1)
		assert.Greater(t, len(w.l.take()), 500)
		release()
		w.hinted("u", func() { w.start("u", "last") })
		another()
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		assert.Contains(t, w.l.take(), "u ContainerStarted last")

		// The request at the end of a long pin does not begin an inspection before unpin.
		n = w.inspected("u")
		release = w.Pin("u")
		time.Sleep(10 * time.Minute)
		w.RequestRelist("u")
		synctest.Wait()
		assert.Equal(t, n, w.inspected("u"))
		release()
		w.hinted("u", func() { w.start("u", "later") })
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, n+1, w.inspected("u"))
		assert.Contains(t, w.l.take(), "u ContainerStarted later")
	})
}

// A caller of GetNewerThan ends the delay of the read that it waits for, and of no other.
func TestAPinDelaysWhatNoCallerWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{Parallel: 1})
		w.start("u", "c0")
		w.start("v", "c1")
		defer run(t, w.Generator)()
		w.settle()
		n := w.inspected("u")
		w.do(func() { w.inspectTake["u"], w.inspectTake["v"] = 100*time.Millisecond, 500*time.Millisecond })

		// A request during the read that the caller gets.
		release := w.Pin("u")
		time.AfterFunc(50*time.Millisecond, func() { w.RequestRelist("u") })
		_, err := w.GetNewerThan(t.Context(), "u", time.Now())
		require.NoError(t, err)
		time.Sleep(500 * time.Millisecond)
		assert.Equal(t, n+1, w.inspected("u"))
		release()
		time.Sleep(time.Second)
		assert.Equal(t, n+2, w.inspected("u"))

		// A caller that gives up before its read begins.
		w.RequestRelist("v")
		synctest.Wait()
		release = w.Pin("u")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = w.GetNewerThan(ctx, "u", time.Now())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(800 * time.Millisecond)
		assert.Equal(t, n+2, w.inspected("u"))
		time.Sleep(time.Second)
		assert.Equal(t, n+3, w.inspected("u"), "when a pin has delayed it for a Period")
		release()
	})
}

func TestPodsNewerThanListsAtOnce(t *testing.T) { // cache-10
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		w.settle()
		w.start("u", "c")
		began := time.Now()
		pods, err := w.PodsNewerThan(t.Context(), began)
		require.NoError(t, err)
		assert.Len(t, pods, 1)
		assert.Zero(t, time.Since(began))
		pods, err = w.PodsNewerThan(t.Context(), began.Add(-time.Second))
		require.NoError(t, err)
		assert.Len(t, pods, 1)
		time.Sleep(10 * time.Second)
		lists := len(w.listed())

		// A list that began earlier is no answer; the next follows immediately, for
		// all waiters.
		w.do(func() { w.listTakes = 400 * time.Millisecond })
		go func() { _, _ = w.PodsNewerThan(t.Context(), time.Now()) }()
		time.Sleep(300 * time.Millisecond)
		w.start("v", "c")
		began = time.Now()
		got := make(chan int)
		for range 10 {
			go func() {
				pods, err := w.PodsNewerThan(t.Context(), began)
				assert.NoError(t, err)
				got <- len(pods)
			}()
		}
		for range 10 {
			assert.Equal(t, 2, <-got)
		}
		assert.Equal(t, 500*time.Millisecond, time.Since(began))
		assert.Len(t, w.listed(), lists+2)

		w.do(func() { w.listErr = errRefused })
		_, err = w.PodsNewerThan(t.Context(), time.Now())
		assert.ErrorIs(t, err, errRefused)

		w.do(func() { w.hangLists = true })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = w.PodsNewerThan(ctx, time.Now())
		assert.EqualError(t, err, "pleg: wait for a list of pods: context deadline exceeded")
	})
}
