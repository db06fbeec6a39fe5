package podworker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// asked is a StatusCache that records the minimum age of the requested status.
type asked struct {
	observed
	since []time.Time
}

func (a *asked) GetNewerThan(_ context.Context, uid types.UID, t time.Time) (*runtime.PodStatus, error) {
	a.since = append(a.since, t)
	return a.Get(uid)
}

func TestEachCallSeesTheResultOfThePreviousOne(t *testing.T) { // pw-36, pw-38
	synctest.Test(t, func(t *testing.T) {
		statuses := new(asked)
		began := time.Now()
		w, err := podworker.New(podworker.Config{Handler: &recorder{work: func() time.Duration { return 5 * time.Second }}, StatusCache: statuses})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("web", 0), true)
		time.Sleep(10 * time.Second)
		w.Remove("web")
		time.Sleep(20 * time.Second)
		stop()
		assert.Equal(t, []time.Time{{}, began.Add(5 * time.Second), began.Add(15 * time.Second)}, statuses.since,
			"any will do for the first; then newer than the end of the Sync, of the Terminate")
	})
}

// A pod that is added under the UID of one that was just terminated must not be given
// a status in which that pod still runs: it would not be admitted, and its
// predecessor's container would be restarted.
func TestAPodSeesNoStatusFromBeforeTheEndOfItsPredecessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		statuses := new(asked)
		began := time.Now()
		w, err := podworker.New(podworker.Config{Handler: &recorder{work: func() time.Duration { return 5 * time.Second }}, StatusCache: statuses})
		require.NoError(t, err)
		stop := run(t, w)
		w.KillOrphan(&runtime.Pod{UID: "web"})
		time.Sleep(20 * time.Second)
		_, _, forgotten := w.Forget("web")
		require.True(t, forgotten)
		statuses.since = nil
		w.Update(newPod("web", 0), true)
		time.Sleep(time.Second)
		stop()
		assert.Equal(t, []time.Time{began.Add(5 * time.Second)}, statuses.since, "newer than the end of the Terminate")
	})
}

// idle is a Handler whose Syncs return the result that is set.
type idle struct {
	silent
	next func() (podworker.SyncResult, error)
}

func (h idle) Sync(context.Context, podworker.SyncRequest) (podworker.SyncResult, error) {
	return h.next()
}

func TestASyncWithoutChangesNeedsNoNewerStatus(t *testing.T) { // pw-36
	for name, c := range map[string]struct {
		next  podworker.SyncResult
		err   error
		moves bool
	}{
		"it did something":                   {moves: true},
		"it did nothing":                     {next: podworker.SyncResult{Idle: true}},
		"it backs off":                       {next: podworker.SyncResult{Idle: true, RetryAt: time.Now().Add(time.Hour)}, err: errors.New("back-off")},
		"it failed, and cannot have idled":   {next: podworker.SyncResult{Idle: true}, err: errors.New("broken"), moves: true},
		"it started something and backs off": {next: podworker.SyncResult{RetryAt: time.Now().Add(time.Hour)}, err: errors.New("back-off"), moves: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				statuses, began, calls := new(asked), time.Now(), 0
				w, err := podworker.New(podworker.Config{StatusCache: statuses, Handler: idle{next: func() (podworker.SyncResult, error) {
					if calls++; calls == 1 {
						return podworker.SyncResult{}, nil // it started the pod
					}
					return c.next, c.err
				}}})
				require.NoError(t, err)
				stop := run(t, w)
				w.Update(newPod("web", 0), true)
				for range 2 {
					time.Sleep(time.Second)
					w.Sync("web")
				}
				synctest.Wait()
				stop()
				after := began
				if c.moves {
					after = began.Add(time.Second)
				}
				assert.Equal(t, []time.Time{{}, began, after}, statuses.since)
			})
		})
	}
}

func TestUpdatesAreAppliedWhileNoCallRuns(t *testing.T) { // pw-21
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}})
		require.NoError(t, err)
		for i := range 10_000 {
			w.Update(newPod(fmt.Sprint("pod-", i%100), i), i < 100)
			w.Sync(types.UID(fmt.Sprint("pod-", i%100)))
		}
		stop := run(t, w)
		synctest.Wait()
		stop()
		assert.Len(t, h.last, 100)
		assert.EqualValues(t, 9999, h.last["pod-99"].Generation)
	})
}

func TestTerminationIsSeenBeforeItIsTakenUp(t *testing.T) { // pw-9, pw-44
	synctest.Test(t, func(t *testing.T) {
		h := &stubborn{}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("web", 0), true)
		synctest.Wait()
		w.Remove("web")
		time.Sleep(time.Second)
		state, _ := w.Table().State("web")
		assert.Equal(t, podworker.Stopping, state, "a Sync that ignores its context may still start containers")
		time.Sleep(5 * time.Second)
		state, _ = w.Table().State("web")
		assert.Equal(t, podworker.Finished, state)
		stop()
	})
}

// stubborn is a Handler whose Sync takes five seconds and ignores its context.
type stubborn struct{ silent }

func (*stubborn) Sync(context.Context, podworker.SyncRequest) (podworker.SyncResult, error) {
	time.Sleep(5 * time.Second)
	return podworker.SyncResult{}, nil
}

func TestOnlyUnknownPodsAreTerminatedAsOrphans(t *testing.T) { // pw-5, pw-6, pw-13
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("web", 0), true)
		w.KillOrphan(&runtime.Pod{UID: "web"})
		time.Sleep(time.Minute)
		state, _ := w.Table().State("web")
		assert.Equal(t, podworker.Syncing, state)
		stop()
	})
}
