package allocation_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
)

func TestPendingResizesGoInOrder(t *testing.T) { // al-6
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, allocation.Config{})
		d.notYet = true
		ask := func(uid types.UID, now, then string, priority int32) {
			pod := wants(d.runningAt(t, uid, now), then)
			pod.Spec.Priority = new(priority)
			d.Allocate(t.Context(), pod, nil)
		}
		ask("e-equal", "cpu=1", "cpu=2", 5)
		ask("f-equal", "cpu=1", "cpu=2", 5)
		ask("d-guaranteed", "cpu=1/1 memory=1/1", "cpu=2/2 memory=1/1", 5)
		ask("c-important", "cpu=1", "cpu=2", 9)
		ask("b-less", "cpu=2", "cpu=1", 1)
		ask("a-later", "cpu=1", "cpu=2", 5) // by its name it would be first
		d.asked, d.notYet, d.room = nil, false, 0
		d.Retry(t.Context(), "periodic_retry")
		assert.Equal(t, []string{"resize b-less 1", "resize c-important 2", "resize d-guaranteed 2", "resize a-later 2", "resize e-equal 2", "resize f-equal 2"}, d.asked)

		// All of these were rejected at one time. The next one is rejected later, and
		// is queued after them although its name sorts first.
		time.Sleep(time.Second)
		ready := d.room
		d.room = -1
		young := wants(d.runningAt(t, "0-young", "cpu=1"), "cpu=2")
		young.Spec.Priority = new(int32(5))
		d.room = ready
		d.asked = nil
		d.Allocate(t.Context(), young, nil)
		assert.Equal(t, "resize 0-young 2", d.asked[len(d.asked)-1], "never rejected: it has waited least")
		d.asked = nil
		d.Retry(t.Context(), "periodic_retry")
		assert.Equal(t, "resize 0-young 2", d.asked[len(d.asked)-1], "longest deferred first")
	})
}

func TestReleasedResourcesAreAvailableToTheNextPod(t *testing.T) { // al-6, al-9
	d := newDesk(t, allocation.Config{})
	d.room = 6
	d.notYet = true
	big := wants(d.runningAt(t, "a", "cpu=2"), "cpu=5")
	small := wants(d.runningAt(t, "b", "cpu=4"), "cpu=1")
	d.Allocate(t.Context(), big, nil)
	d.Allocate(t.Context(), small, nil)
	assert.Equal(t, "2", cpus(d.Allocated(big)))
	d.notYet = false
	assert.Equal(t, 2, d.Retry(t.Context(), "pods_added"))
	require.Len(t, d.others, 1)
	assert.Equal(t, "1", cpus(d.others[0]), "others with their allocations")
	assert.Equal(t, "5", cpus(d.Allocated(big)))
}

func TestNoResizeIsDecidedBeforeSourcesAreReady(t *testing.T) { // al-8
	d := newDesk(t, allocation.Config{})
	d.notYet = true
	pod := wants(d.runningAt(t, "u", "cpu=1"), "cpu=2")
	assert.Equal(t, "1", cpus(d.Allocate(t.Context(), pod, nil)))
	for _, trigger := range []string{"pods_added", "pod_updated", "pods_removed", "pod_terminated", "pod_resized", "periodic_retry"} {
		assert.Zero(t, d.Retry(t.Context(), trigger))
	}
	assert.Equal(t, []string{"add u 1"}, d.asked)
	assert.Empty(t, conditions(d, "u"))
}

func TestACallThatEndsWithItsContextDecidesNothing(t *testing.T) {
	for name, room := range map[string]int64{"rejected": 1, "admitted": -1} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, allocation.Config{})
			pod := wants(d.runningAt(t, "u", "cpu=1"), "cpu=2")
			ctx, stop := context.WithCancel(t.Context())
			d.room, d.asking = room, stop
			assert.Equal(t, "1", cpus(d.Allocate(ctx, pod, nil)))
			assert.Contains(t, d.asked, "resize u 2")
			assert.Empty(t, d.decided)
			assert.Empty(t, conditions(d, "u"), "a rejection by an agent that stops is not reported")

			d.room, d.asking = -1, nil
			assert.Equal(t, 1, d.Retry(t.Context(), "periodic_retry"), "it is still pending")
			assert.Equal(t, "2", cpus(d.Allocated(pod)))
		})
	}
}

func TestTriggersAreNamed(t *testing.T) { // al-7
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, allocation.Config{})
		d.room = 2
		other := d.runningAt(t, "other", "cpu=1/1")
		pod := wants(d.runningAt(t, "u", "cpu=1/1"), "cpu=2/2")
		d.Allocate(t.Context(), pod, runs("a: cpu=1/1"))
		late := podOf("late", "a: cpu=0")
		require.Nil(t, d.Admit(t.Context(), late))
		d.Allocate(t.Context(), wants(late, "cpu=1"), nil)
		d.Retry(t.Context(), "pods_removed")
		var got []string
		for _, i := range d.decided {
			got = append(got, string(i.UID)+" "+string(i.Trigger))
		}
		assert.ElementsMatch(t, []string{"u pod_updated", "u pods_added", "late pods_added", "u pods_removed", "late pods_removed"}, got)

		// One that is done with its resize may have made room.
		d.decided = nil
		less := wants(other, "cpu=0/1")
		d.Allocate(t.Context(), less, runs("a: cpu=1/1"))
		d.decided = nil
		d.room = 0
		d.Allocate(t.Context(), less, runs("a: cpu=0/1"))
		require.NotEmpty(t, d.decided)
		assert.Equal(t, "pod_resized", d.decided[0].Trigger)
	})
}

func TestRunRetriesPeriodically(t *testing.T) { // al-7
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, allocation.Config{})
		d.notYet = true
		pod := wants(d.runningAt(t, "u", "cpu=1"), "cpu=2")
		d.room = 0
		d.Allocate(t.Context(), pod, nil)
		d.asked = nil
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- d.Run(ctx) }()

		asked := func() int {
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.asked)
		}
		trigger := func(i int) string {
			d.mu.Lock()
			defer d.mu.Unlock()
			require.Greater(t, len(d.decided), i)
			return d.decided[i].Trigger
		}
		time.Sleep(45 * time.Second)
		assert.Zero(t, asked(), "al-8")
		d.mu.Lock()
		d.notYet = false // seen at 1:00, 30 s after the first try
		d.mu.Unlock()
		time.Sleep(30 * time.Second)
		assert.Equal(t, 1, asked(), "30 s until ready")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 1, asked())
		time.Sleep(time.Minute)
		assert.Equal(t, 2, asked(), "3 m later")
		assert.Equal(t, "periodic_retry", trigger(1))

		d.Release("unknown")
		assert.Equal(t, 2, asked(), "nothing became free")
		d.mu.Lock()
		d.room = -1
		d.mu.Unlock()
		require.Nil(t, d.Admit(ctx, podOf("gone", "a: cpu=1")))
		d.Release("gone")
		assert.Equal(t, 4, asked())
		assert.Equal(t, "pods_removed", trigger(2), "at once")
		d.mu.Lock()
		assert.Equal(t, []types.UID{"u", "u"}, d.changed, "once rejected, once allocated")
		d.mu.Unlock()
		cancel()
		require.NoError(t, <-done)
	})
}
