package podworker_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
)

func TestKillAndWaitReturnsNilOnlyIfThePodHasStopped(t *testing.T) {
	for name, tc := range map[string]struct {
		uid  types.UID
		act  func(w *podworker.Workers, stop func())
		want podworker.Outcome
		err  string // empty: nil
	}{
		"stopped": {uid: "web", want: podworker.Stopped},
		"already stopped": {uid: "web", want: podworker.AlreadyStopped, act: func(w *podworker.Workers, _ func()) {
			<-w.Kill("web", podworker.KillOptions{})
			synctest.Wait()
		}},
		"never started": {uid: "second", want: podworker.NeverStarted},
		"not known": {uid: "other", want: podworker.NotFound,
			err: "podworker: kill pod other: not found"},
		"abandoned while it waits": {uid: "slow", want: podworker.Abandoned,
			act: func(_ *podworker.Workers, stop func()) { time.AfterFunc(time.Second, stop) },
			err: "podworker: kill pod slow: abandoned"},
		"abandoned before it": {uid: "web", want: podworker.Abandoned,
			act: func(_ *podworker.Workers, stop func()) { stop() },
			err: "podworker: kill pod web: abandoned"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err := podworker.New(podworker.Config{Handler: slowPod{uid: "slow"}, StatusCache: observed{}})
				require.NoError(t, err)
				stop := run(t, w)
				first, second := newPod("first", 0), newPod("second", 0)
				for _, pod := range []*v1.Pod{first, second} {
					pod.Name = "static"
					pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
				}
				for _, pod := range []*v1.Pod{newPod("web", 0), newPod("slow", 0), first, second} {
					w.Update(pod, true)
				}
				synctest.Wait()
				stopped := false
				once := func() {
					if !stopped {
						stopped = true
						stop()
					}
				}
				if tc.act != nil {
					tc.act(w, once)
				}
				outcome, err := w.KillAndWait(t.Context(), tc.uid, podworker.KillOptions{})
				assert.Equal(t, tc.want, outcome)
				if tc.err == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, tc.err)
				}
				synctest.Wait()
				once()
			})
		})
	}
}

// slowPod is a Handler whose Terminate of one pod returns only with its context.
type slowPod struct {
	silent
	uid types.UID
}

func (s slowPod) Terminate(ctx context.Context, w podworker.SyncRequest) error {
	if w.UID != s.uid {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestAnEndlessGracePeriodDoesNotOverflowThePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := podworker.New(podworker.Config{Handler: slow{stop: time.Hour}, StatusCache: observed{}})
		require.NoError(t, err)
		stop := run(t, w)
		pod := newPod("web", 0)
		pod.Spec.TerminationGracePeriodSeconds = new(int64(math.MaxInt64))
		w.Update(pod, true)
		synctest.Wait()
		outcome, err := w.KillAndWait(t.Context(), "web", podworker.KillOptions{})
		require.NoError(t, err)
		assert.Equal(t, podworker.Stopped, outcome)
		stop()
	})
}
