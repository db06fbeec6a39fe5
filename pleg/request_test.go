package pleg_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/pleg"
)

func TestARequestIsServedInTheSameInstant(t *testing.T) { // pleg-30
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		time.Sleep(500 * time.Millisecond)
		began := time.Now()

		n.start("u", "c")
		g.RequestRelist("u")
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerStarted c"}, l.take())
		n.exit("u", "c")
		g.RequestRelist("u")
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerDied c"}, l.take())
		n.remove("u", "c")
		g.RequestRelist("u")
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerRemoved c"}, l.take(), "the kubelet's requests miss this (pleg-31)")
		assert.Zero(t, time.Since(began))
		assert.Len(t, n.listed(), 1)

		time.Sleep(10 * time.Second)
		assert.Empty(t, l.take(), "lists find nothing new")
		assert.Equal(t, 3, n.inspected("u"), "and inspect nothing")
	})
}

func TestRequestsAreMerged(t *testing.T) { // pleg-28
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("u", "c")
		g := newGenerator(t, n, nil, pleg.Config{})
		defer run(t, g)()
		synctest.Wait()
		n.do(func() { n.inspectTake["u"] = 100 * time.Millisecond })
		for range 10_000 {
			g.RequestRelist("u")
		}
		time.Sleep(50 * time.Millisecond)
		for range 10_000 { // an inspection in progress may have missed the changes that these are about (pleg-29)
			g.RequestRelist("u")
		}
		time.Sleep(time.Second)
		assert.Equal(t, 1+2, n.inspected("u"))
	})
}

func TestARequestIsAnsweredByALaterList(t *testing.T) { // pleg-29
	n, l := newNode(), new(listener)
	n.start("u", "c")
	g := newGenerator(t, n, l, pleg.Config{})
	require.NoError(t, g.Relist(t.Context()))
	g.RequestRelist("u")
	g.RequestRelist("")
	g.RequestRelist("unknown")
	require.NoError(t, g.Relist(t.Context()))
	assert.Equal(t, 1, n.inspected("u"), "the list showed no change")
	assert.Zero(t, n.inspected("unknown"))
	assert.Equal(t, []string{"u ContainerStarted c"}, l.take())
}

// betweenLists moves a test to an instant at which no list begins: a request made
// during a list is served by a separate inspection (pleg-29).
const betweenLists = 500 * time.Millisecond

func TestAReinspectionIsReportedExactlyOnce(t *testing.T) { // pleg-20, pleg-27
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		n.start("u", "c")
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		synctest.Wait()
		l.take()

		time.Sleep(betweenLists)
		g.RequestReinspect("u")
		synctest.Wait()
		assert.Equal(t, []string{"u PodSync"}, l.take())
		assert.Equal(t, 2, n.inspected("u"))

		n.exit("u", "c")
		g.RequestReinspect("u")
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerDied c"}, l.take(), "no PodSync in addition to another event")

		n.do(func() { n.inspectErr["u"] = errRefused })
		g.RequestReinspect("u")
		synctest.Wait()
		assert.Empty(t, l.take(), "not before a good inspection")
		n.do(func() { clear(n.inspectErr) })
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"u PodSync"}, l.take())

		n.remove("u", "c")
		g.RequestReinspect("u")
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerRemoved c"}, l.take())
	})
}

func TestReinspectionRequestsAreMerged(t *testing.T) { // pleg-20, pleg-28
	n, l := newNode(), new(listener)
	n.start("u", "c")
	g := newGenerator(t, n, l, pleg.Config{})
	require.NoError(t, g.Relist(t.Context()))
	l.take()
	g.RequestReinspect("u")
	g.RequestReinspect("u")
	require.NoError(t, g.Relist(t.Context()))
	require.NoError(t, g.Relist(t.Context()))
	assert.Equal(t, []string{"u PodSync"}, l.take())
	assert.Equal(t, 2, n.inspected("u"))
}

func TestRequestsAreServedWhileAListHangs(t *testing.T) { // pleg-12
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		n.start("u", "c")
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		synctest.Wait()
		l.take()
		n.do(func() { n.hangLists = true })
		time.Sleep(10 * time.Minute)
		assert.Error(t, g.Healthy())
		n.exit("u", "c")
		g.RequestRelist("u")
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerDied c"}, l.take())
	})
}

// The work between lists does not wait for a list that hangs: reads that a pin has delayed, and those after a failure.
func TestDelayedReadsAreMadeWhileAListHangs(t *testing.T) { // pleg-12, pleg-32
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		n.start("u", "c")
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		synctest.Wait()
		n.do(func() { n.hangLists = true })
		time.Sleep(10 * time.Second)
		lists := len(n.listed())
		l.take()

		release := g.Pin("u")
		n.exit("u", "c")
		g.RequestRelist("u")
		release()
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerDied c"}, l.take())

		release = g.Pin("u")
		n.start("u", "d")
		g.RequestRelist("u")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerStarted d"}, l.take(), "also while it is pinned")
		release()

		n.do(func() { n.inspectErr["u"] = errRefused })
		n.exit("u", "d")
		g.RequestRelist("u")
		synctest.Wait()
		assert.Empty(t, l.take())
		n.do(func() { clear(n.inspectErr) })
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerDied d"}, l.take())
		assert.Len(t, n.listed(), lists, "one list at a time")
	})
}

// A caller that has waited for the status of a pod relies on Pods to return the other
// pods: a static pod that waits for one of its name to terminate (inv-3). The
// simulation found that this did not hold after a restart of the agent.
func TestNoPodIsInspectedBeforeTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("old", "c")
		n.do(func() { n.listTakes = time.Second })
		g := newGenerator(t, n, nil, pleg.Config{})
		defer run(t, g)()
		began := time.Now()
		_, err := g.GetNewerThan(t.Context(), "new", began)
		require.NoError(t, err)
		assert.Len(t, g.Pods(), 1)
		assert.Equal(t, time.Second, time.Since(began))
	})
}
