package pleg_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestNewNamesTheInvalidField(t *testing.T) {
	for want, cfg := range map[string]pleg.Config{
		"pleg: Config.Runtime is nil":                            {},
		"pleg: Config.Period is negative: -1s":                   {Runtime: newNode(), Period: -time.Second},
		"pleg: Config.MaxPeriod is negative: -1s":                {Runtime: newNode(), MaxPeriod: -time.Second},
		"pleg: Config.MaxPeriod 500ms is below Config.Period 1s": {Runtime: newNode(), MaxPeriod: time.Second / 2},
		"pleg: Config.Threshold is negative: -1s":                {Runtime: newNode(), Threshold: -time.Second},
		"pleg: Config.InspectTimeout is negative: -1s":           {Runtime: newNode(), InspectTimeout: -time.Second},
		"pleg: Config.Parallel is negative: -1":                  {Runtime: newNode(), Parallel: -1},
		"pleg: Config.Threshold 1s is below Config.Period 1m0s":  {Runtime: newNode(), Period: time.Minute, Threshold: time.Second},
		"pleg: Config.Threshold 500ms is below Config.Period 1s": {Runtime: newNode(), Threshold: time.Second / 2},
	} {
		_, err := pleg.New(cfg)
		assert.EqualError(t, err, want)
	}
	_, err := pleg.New(pleg.Config{Runtime: newNode(), Period: time.Hour})
	assert.NoError(t, err, "the default threshold and the longest period are never below the period")
}

func TestRunListsAtOnceAndThenAPeriodAfterEachListHasEnded(t *testing.T) { // pleg-10
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.listTakes = 300 * time.Millisecond
		began := time.Now()
		stop := run(t, newGenerator(t, n, nil, pleg.Config{Period: 2 * time.Second}))
		time.Sleep(7 * time.Second)
		stop()
		var at []time.Duration
		for _, l := range n.listed() {
			at = append(at, l.Sub(began))
		}
		assert.Equal(t, []time.Duration{0, 2300 * time.Millisecond, 4600 * time.Millisecond, 6900 * time.Millisecond}, at)
	})
}

func TestRunReportsChanges(t *testing.T) { // pleg-17
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		g := newGenerator(t, n, l, pleg.Config{})
		n.start("u1", "sb1")
		n.start("u1", "c1")
		n.exit("u0", "c0")
		defer run(t, g)()
		synctest.Wait()
		assert.ElementsMatch(t, []string{"u1 ContainerStarted sb1", "u1 ContainerStarted c1", "u0 ContainerDied c0"}, l.take())

		n.exit("u1", "c1")
		n.start("u1", "c2")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"u1 ContainerDied c1", "u1 ContainerStarted c2"}, l.take())
		assert.Equal(t, 2, n.inspected("u1"))
		assert.Equal(t, 1, n.inspected("u0"), "an unchanged pod is not inspected again (pleg-16)")

		n.remove("u0", "c0")
		n.remove("u1", "c1")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"u0 ContainerRemoved c0", "u1 ContainerRemoved c1"}, l.take())
		assert.Equal(t, 1, n.inspected("u0"), "a pod that is gone is not inspected (pleg-18)")
		status, err := g.Get("u0")
		require.NoError(t, err)
		assert.Equal(t, &runtime.PodStatus{UID: "u0", ObservedAt: status.ObservedAt}, status)

		time.Sleep(time.Minute)
		assert.Empty(t, l.take())
	})
}

func TestRunKeepsGoingAfterAFailedRelist(t *testing.T) { // pleg-13
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		n.start("u", "c")
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		synctest.Wait()
		l.take()

		n.do(func() { n.listErr = errRefused })
		n.exit("u", "c")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Empty(t, l.take(), "a failed list changes nothing")
		status, err := g.Get("u")
		require.NoError(t, err)
		assert.Equal(t, runtime.ContainerRunning, status.Containers[0].State)
		assert.Len(t, g.Pods(), 1)

		n.do(func() { n.listErr = nil })
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerDied c"}, l.take())
	})
}

func TestRunReturnsNilAndLeavesNoGoroutineWhenCancelled(t *testing.T) {
	for name, cfg := range map[string]func(*node){
		"idle":                   func(*node) {},
		"in a list":              func(n *node) { n.hangLists = true },
		"in an inspection":       func(n *node) { n.hang["u"] = true },
		"when it has no runtime": func(n *node) { n.listErr = errRefused },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // waits for every goroutine
				n := newNode()
				n.start("u", "c")
				cfg(n)
				g := newGenerator(t, n, nil, pleg.Config{})
				stop := run(t, g)
				time.Sleep(1500 * time.Millisecond)
				began := time.Now()
				stop()
				assert.Zero(t, time.Since(began), "at once")
				_, err := g.Get("u")
				assert.NotErrorIs(t, err, context.Canceled, "the end of Run is not an error of the pod")
			})
		})
	}
}

func TestRunAndRelistDoNotOverlap(t *testing.T) { // pleg-11
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, newNode(), nil, pleg.Config{})
		stop := run(t, g)
		synctest.Wait()
		assert.EqualError(t, g.Relist(t.Context()), "pleg: a Run or Relist of this Generator is running")
		assert.EqualError(t, g.Run(t.Context()), "pleg: Generator.Run was called before")
		stop()
		assert.NoError(t, g.Relist(t.Context()))
	})
}

func TestARelistDeliversWhatRunDidNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		n.start("u", "c")
		n.hang["u"] = true
		g := newGenerator(t, n, l, pleg.Config{})
		stop := run(t, g)
		synctest.Wait()
		stop()
		assert.Empty(t, l.take())
		n.do(func() { clear(n.hang); n.listErr = errRefused })
		assert.ErrorIs(t, g.Relist(t.Context()), errRefused)
		assert.Equal(t, []string{"u ContainerStarted c"}, l.take())
	})
}

// While Handle blocks, relisting continues; afterwards it gets the difference.
func TestASlowHandlerLosesNothingAndDelaysNoRelist(t *testing.T) { // lq-1, pleg-21, pleg-42
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("v", "c1")
		n.start("u", "c1") // the newest is listed first, and so inspected first
		var events []string
		var g *pleg.Generator
		g, err := pleg.New(pleg.Config{Runtime: n, Parallel: 1, Handle: func(e pleg.Event) {
			time.Sleep(10 * time.Second)
			// It may wait for a status while it blocks all events.
			status, err := g.GetNewerThan(t.Context(), e.UID, time.Now())
			assert.NoError(t, err)
			assert.Equal(t, time.Now(), status.ObservedAt)
			events = append(events, e.String())
		}})
		require.NoError(t, err)
		defer run(t, g)()
		time.Sleep(1500 * time.Millisecond)
		for i := range 7 { // c1 to c6 come and go, c7 exits, c8 stays
			n.exit("v", fmt.Sprint("c", i+1))
			n.start("v", fmt.Sprint("c", i+2))
			n.remove("v", fmt.Sprint("c", i))
			time.Sleep(time.Second)
			status, err := g.Get("v")
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprint("c", i+2), status.Containers[0].ID, "the cache is updated")
			assert.NoError(t, g.Healthy())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerStarted c1", "v ContainerDied c7", "v ContainerStarted c8"}, events)
	})
}

func TestOnePodThatHangsDelaysNoOther(t *testing.T) { // pleg-14
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		for i := range 100 {
			n.start(types.UID(fmt.Sprint("u", i)), "c")
		}
		n.hang["u50"] = true
		n.inspectTake[""] = 10 * time.Millisecond
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		time.Sleep(150 * time.Millisecond) // 99 inspections of 10 ms, 7 at a time
		synctest.Wait()
		assert.Len(t, l.take(), 99)

		for round := range 60 {
			for i := range 100 {
				uid := types.UID(fmt.Sprint("u", i))
				if round%2 == 0 {
					n.exit(uid, "c")
				} else {
					n.start(uid, "c")
				}
			}
			time.Sleep(1200 * time.Millisecond)
			synctest.Wait()
			assert.Len(t, l.take(), 99, "all the others, within a period and the inspections")
			require.NoError(t, g.Healthy())
		}
		_, err := g.Get("u50")
		assert.ErrorIs(t, err, context.DeadlineExceeded, "it is known to be stale")

		n.do(func() { clear(n.hang) })
		time.Sleep(12 * time.Second)
		synctest.Wait()
		status, err := g.Get("u50")
		require.NoError(t, err)
		assert.Len(t, status.Containers, 1)
		assert.Equal(t, []string{"u50 ContainerStarted c"}, l.take(), "and reported when it responds again")
	})
}

func TestHangingPodsLeaveHalfOfTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		for i := range 50 {
			uid := types.UID(fmt.Sprint("hung", i))
			n.start(uid, "c")
			n.hang[uid] = true
		}
		g := newGenerator(t, n, l, pleg.Config{Parallel: 4})
		defer run(t, g)()
		time.Sleep(10 * time.Minute) // each was tried at least once
		n.start("u", "c")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerStarted c"}, l.take())

		n.do(func() { n.inspectErr["u"] = errRefused })
		n.exit("u", "c")
		time.Sleep(10 * time.Second)
		n.do(func() { delete(n.inspectErr, "u") })
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerDied c"}, l.take(), "one that fails at once does not queue with them")
		assert.Equal(t, 4, n.peak)
	})
}

func TestAFailedInspectionKeepsItsEvents(t *testing.T) { // pleg-19
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		n.start("u", "c1")
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		synctest.Wait()
		l.take()

		n.do(func() { n.inspectErr["u"] = errRefused })
		n.exit("u", "c1")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Empty(t, l.take())
		assert.Equal(t, 6, n.inspected("u"), "tried once after each list")
		status, err := g.Get("u")
		assert.ErrorIs(t, err, errRefused)
		assert.EqualError(t, err, "pleg: inspect pod u: refused")
		assert.Equal(t, runtime.ContainerRunning, status.Containers[0].State, "the previously cached state")
		assert.Equal(t, runtime.ContainerExited, g.Pods()[0].Containers[0].State, "the list is known")
		_, err = g.GetNewerThan(t.Context(), "u", time.Now())
		assert.ErrorIs(t, err, errRefused, "an error is an answer too")

		n.do(func() { clear(n.inspectErr) })
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerDied c1"}, l.take())
		_, err = g.Get("u")
		assert.NoError(t, err)
	})
}

func TestAPodIsReportedOnceItCanBeInspected(t *testing.T) { // pleg-19, pleg-20
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		n.start("u", "c1")
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		synctest.Wait()
		l.take()
		n.do(func() { n.inspectErr["u"] = errRefused })
		g.RequestRelist("u")
		synctest.Wait()
		assert.Empty(t, l.take())
		n.do(func() { clear(n.inspectErr) })
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"u PodSync"}, l.take())
	})
}

func TestAnExitIsLoggedWithItsCode(t *testing.T) { // pleg-24
	var logged bytes.Buffer
	n := newNode()
	n.start("u", "c")
	g := newGenerator(t, n, new(listener), pleg.Config{Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(t, g.Relist(t.Context()))
	n.exit("u", "c")
	n.pods["u"].Containers[0].ExitCode = 137
	require.NoError(t, g.Relist(t.Context()))
	assert.Contains(t, logged.String(), `level=DEBUG msg="Container died" podUID=u containerName=c containerID=c exitCode=137`)
}
