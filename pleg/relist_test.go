package pleg_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
)

func TestRelistReportsRemovalsFirstThenByUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		n.start("z", "c")
		g := newGenerator(t, n, l, pleg.Config{})
		require.NoError(t, g.Relist(t.Context()))
		l.take()

		n.remove("z", "c")
		for i, uid := range []types.UID{"b", "d", "a", "c"} {
			n.start(uid, "c")
			n.inspectTake[uid] = time.Duration(i) * time.Millisecond
		}
		n.start("e", "c")
		g.RequestRelist("z")
		require.NoError(t, g.Relist(t.Context()))
		assert.Equal(t, []string{"z ContainerDied c", "z ContainerRemoved c", "a ContainerStarted c", "b ContainerStarted c",
			"c ContainerStarted c", "d ContainerStarted c", "e ContainerStarted c"}, l.take())
	})
}

// Pods that were never seen and cannot be inspected are reported by the list that does not contain
// them, in the order of their UIDs.
func TestAListReportsPodsThatDoNotExistByUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		synctest.Wait()
		var want []string
		for uid := 'a'; uid <= 'j'; uid++ {
			n.do(func() { n.inspectErr[types.UID(uid)] = errRefused })
			want = append(want, string(uid)+" PodSync")
		}
		for uid := 'j'; uid >= 'a'; uid-- {
			g.RequestRelist(types.UID(uid))
		}
		synctest.Wait()
		assert.Empty(t, l.take())
		time.Sleep(10 * time.Second)
		assert.Equal(t, want, l.take())
	})
}

// The result of an earlier read never replaces that of a later one, whichever finishes
// first (pleg-40).
func TestAListThatBeganEarlierIsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		n.start("u", "c")
		n.start("v", "c")
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		synctest.Wait()
		l.take()

		n.do(func() { n.listTakes = 400 * time.Millisecond })
		time.Sleep(1300 * time.Millisecond) // the list has seen u and v and is on its way back
		n.remove("u", "c")
		n.exit("v", "c")
		n.start("w", "c")
		g.RequestRelist("u")
		g.RequestRelist("v")
		g.RequestRelist("w")
		synctest.Wait()
		assert.ElementsMatch(t, []string{"u ContainerDied c", "u ContainerRemoved c", "v ContainerDied c", "w ContainerStarted c"}, l.take())
		time.Sleep(10 * time.Second)
		assert.Empty(t, l.take())
		assert.Len(t, g.Pods(), 2)
		assert.Equal(t, 2, n.inspected("v"))
	})
}

func TestAnInspectionThatBeganEarlierIsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		n.start("u", "c")
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		time.Sleep(500 * time.Millisecond)
		l.take()

		n.do(func() { n.inspectTake["u"] = 800 * time.Millisecond })
		g.RequestRelist("u")
		time.Sleep(450 * time.Millisecond) // it has seen u and is on its way back
		n.remove("u", "c")
		time.Sleep(100 * time.Millisecond) // the list has not
		assert.Equal(t, []string{"u ContainerDied c", "u ContainerRemoved c"}, l.take())
		time.Sleep(10 * time.Second)
		assert.Empty(t, l.take())
		assert.Empty(t, g.Pods())
	})
}

func TestAListConfirmsAnInspectionUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		time.Sleep(900 * time.Millisecond)
		n.start("u", "c")
		n.do(func() { n.inspectTake["u"] = 400 * time.Millisecond })
		g.RequestRelist("u")
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"u ContainerStarted c"}, l.take())
		assert.Equal(t, 1, n.inspected("u"), "both saw the same")
	})
}
