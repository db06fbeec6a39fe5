package pleg_test

import (
	"fmt"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
)

// Only Run starts goroutines of a Generator: their number does not depend on the
// number of pods, nor on how many of them fail.
func TestAnIdlePodHasNoGoroutine(t *testing.T) {
	count := func(pods int) (goroutines int) {
		synctest.Test(t, func(t *testing.T) {
			w := newWatched(t, pleg.Config{})
			for i := range pods {
				uid := types.UID(fmt.Sprint("u", i))
				w.start(uid, "c")
				if i%10 == 0 {
					w.inspectErr[uid] = errRefused
				}
			}
			defer run(t, w.Generator)()
			time.Sleep(10*time.Second + betweenLists)
			synctest.Wait()
			goroutines = goruntime.NumGoroutine()
		})
		return goroutines
	}
	// Goroutines of earlier tests may end, and the runtime may start some of its own, between
	// two counts.
	before, many, after := count(1), count(2000), count(1)
	assert.Less(t, many, max(before, after)+10)
}

// Requests for pods that never existed leave nothing behind, though the next list is
// minutes away; nor do pods that come and go while lists fail.
func TestMemoryIsBoundedByThePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		w.settle()
		for i := range 1000 {
			uid := types.UID(fmt.Sprint("never", i))
			w.RequestRelist(uid)
			w.RequestReinspect(uid)
			w.hints <- uid
			_, err := w.GetNewerThan(t.Context(), uid, time.Now())
			require.NoError(t, err)
			synctest.Wait()
		}
		assert.LessOrEqual(t, pleg.Records(w.Generator), 1)

		w.do(func() { w.listErr = errRefused })
		for i := range 100 {
			uid := types.UID(fmt.Sprint("brief", i))
			w.hinted(uid, func() { w.start(uid, "c") })
			time.Sleep(time.Second)
			w.hinted(uid, func() { w.remove(uid, "c") })
		}
		time.Sleep(10 * time.Second)
		assert.LessOrEqual(t, pleg.Records(w.Generator), 1)
	})
}

func TestPodsOfASandboxOnly(t *testing.T) { // pleg-2, pleg-15
	synctest.Test(t, func(t *testing.T) {
		n, l := newNode(), new(listener)
		n.start("u", "sb1")
		g := newGenerator(t, n, l, pleg.Config{})
		defer run(t, g)()
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerStarted sb1"}, l.take())
		status, err := g.Get("u")
		require.NoError(t, err)
		assert.Len(t, status.Sandboxes, 1)
		n.exit("u", "sb1")
		n.start("u", "sb2")
		time.Sleep(1100 * time.Millisecond)
		assert.Equal(t, []string{"u ContainerDied sb1", "u ContainerStarted sb2"}, l.take())
		n.remove("u", "sb1")
		n.remove("u", "sb2")
		time.Sleep(time.Second)
		assert.Equal(t, []string{"u ContainerRemoved sb1", "u ContainerDied sb2", "u ContainerRemoved sb2"}, l.take())
		assert.Zero(t, pleg.Records(g))
	})
}
