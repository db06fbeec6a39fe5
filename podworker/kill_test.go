package podworker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// run runs w until the returned stop is called.
func run(t *testing.T, w *podworker.Workers) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- w.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(t, <-ran)
	}
}

// slow is a Handler whose Terminate takes that long and ignores its context.
type slow struct {
	silent
	stop time.Duration
}

func (s slow) Terminate(context.Context, podworker.SyncRequest) error {
	time.Sleep(s.stop)
	return nil
}

func TestKillAndWaitReportsATimeout(t *testing.T) { // pw-59, pw-60, pw-61
	for name, tc := range map[string]struct {
		stop   time.Duration
		opts   podworker.KillOptions
		want   podworker.Outcome
		waited time.Duration
	}{
		"in time":                               {2 * time.Second, podworker.KillOptions{}, podworker.Stopped, 2 * time.Second},
		"half as much again as the grace":       {time.Hour, podworker.KillOptions{GracePeriodSeconds: new(int64(20))}, 0, 30 * time.Second},
		"ten seconds at least":                  {time.Hour, podworker.KillOptions{GracePeriodSeconds: new(int64(0))}, 0, 10 * time.Second},
		"the pod's own grace, if there is none": {time.Hour, podworker.KillOptions{}, 0, 45 * time.Second},
		"the caller's timeout":                  {time.Hour, podworker.KillOptions{Timeout: time.Minute}, 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var events []runtime.Event
				w, err := podworker.New(podworker.Config{Handler: slow{stop: tc.stop}, StatusCache: observed{},
					Record: func(e runtime.Event) { events = append(events, e) }})
				require.NoError(t, err)
				stop := run(t, w)
				w.Update(newPod("web", 0), true)
				synctest.Wait()
				began := time.Now()
				got, err := w.KillAndWait(t.Context(), "web", tc.opts)
				assert.Equal(t, tc.waited, time.Since(began))
				assert.Equal(t, tc.want, got)
				if tc.want == 0 {
					require.ErrorIs(t, err, podworker.ErrStillRunning)
					assert.ErrorContains(t, err, "timeout waiting to kill pod web")
					require.Len(t, events, 1)
					assert.Equal(t, "Warning ExceededGracePeriod Container runtime did not kill the pod within specified grace period.",
						events[0].Type+" "+events[0].Reason+" "+events[0].Message)
				} else {
					require.NoError(t, err)
					assert.Empty(t, events)
				}
				stop()
			})
		})
	}
}

func TestKillAndWaitCanBeCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := podworker.New(podworker.Config{Handler: slow{stop: time.Minute}, StatusCache: observed{}})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("web", 0), true)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = w.KillAndWait(ctx, "web", podworker.KillOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(2 * time.Minute)
		state, _ := w.Table().State("web")
		assert.Equal(t, podworker.Finished, state, "the kill went on")
		stop()
	})
}

func TestOutcomeString(t *testing.T) {
	var words []string
	for o := podworker.Outcome(0); o <= podworker.Abandoned; o++ {
		words = append(words, o.String())
	}
	assert.Equal(t, []string{"none", "stopped", "already stopped", "never started", "not found", "abandoned"}, words)
}

// bomb is a Handler that panics in Sync, of one pod.
type bomb struct{ silent }

func (bomb) Sync(_ context.Context, w podworker.SyncRequest) (podworker.SyncResult, error) {
	if w.UID == "web" {
		panic(errors.New("boom"))
	}
	return podworker.SyncResult{}, nil
}

func TestAPanicIsAnErrorOfThatPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		infos := map[string][]error{}
		w, err := podworker.New(podworker.Config{Handler: bomb{}, StatusCache: observed{}, Parallel: 1, Hooks: podworker.Hooks{
			Synced: func(i podworker.SyncInfo) { infos[string(i.UID)] = append(infos[string(i.UID)], i.Err) },
		}})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("web", 0), true)
		w.Update(newPod("db", 0), true)
		time.Sleep(16 * time.Second)
		stop()
		require.Len(t, infos["web"], 2, "it is tried again")
		assert.EqualError(t, infos["web"][0], "podworker: the handler panicked: boom")
		assert.Equal(t, []error{nil}, infos["db"])
	})
}

func TestTheFirstCallReportsTheStartLatency(t *testing.T) { // pw-3, pw-34
	synctest.Test(t, func(t *testing.T) {
		var infos []podworker.SyncInfo
		h := &recorder{work: func() time.Duration { return 3 * time.Second }}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}, Parallel: 1,
			Hooks: podworker.Hooks{Synced: func(i podworker.SyncInfo) { infos = append(infos, i) }}})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("a", 0), true)
		synctest.Wait()
		w.Update(newPod("b", 0), true)
		time.Sleep(time.Second)
		w.Update(newPod("b", 1), false)
		w.Update(newPod("a", 1), false)
		time.Sleep(20 * time.Second)
		stop()
		require.Len(t, infos, 3)
		assert.Equal(t, "b", infos[1].Pod.Name)
		assert.Equal(t, 3*time.Second, infos[1].Queued, "pw-3: since the oldest of the updates that it answers")
		assert.Equal(t, 3*time.Second, infos[1].SinceAdded)
		assert.True(t, infos[1].First)
		assert.Equal(t, 5*time.Second, infos[2].Queued, "an update during a call is due from then on")
	})
}

func TestCountsByKind(t *testing.T) { // met-1, pw-58
	synctest.Test(t, func(t *testing.T) {
		w, err := podworker.New(podworker.Config{Handler: slow{stop: time.Hour}, StatusCache: observed{}})
		require.NoError(t, err)
		stop := run(t, w)
		static := newPod("static", 0)
		static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		for _, pod := range []*v1.Pod{newPod("a", 0), newPod("b", 0), newPod("c", 0), static} {
			w.Update(pod, true)
		}
		w.KillOrphan(&runtime.Pod{UID: "lost"})
		synctest.Wait()
		w.Remove("c")
		synctest.Wait()
		type count struct {
			State                   podworker.State
			Orphan, Removed, Static bool
		}
		counts := map[count]int{}
		for _, p := range w.Table().States() {
			counts[count{p.State, p.Pod == nil, p.Removed, p.Pod != nil && runtime.IsStatic(p.Pod)}]++
		}
		assert.Equal(t, map[count]int{
			{State: podworker.Syncing}:                    2,
			{State: podworker.Syncing, Static: true}:      1,
			{State: podworker.Terminating, Removed: true}: 1,
			{State: podworker.Terminating, Orphan: true}:  1,
		}, counts)
		stop()
	})
}
