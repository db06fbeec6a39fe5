package podworker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// graces is a Handler that keeps the grace period of each Terminate and blocks
// in it until its context is done.
type graces struct {
	silent
	got []string
}

func (g *graces) Terminate(ctx context.Context, w podworker.SyncRequest) error {
	text := "recorded"
	if s := w.GracePeriodSeconds; s != nil {
		text = (time.Duration(*s) * time.Second).String()
	}
	g.got = append(g.got, text)
	<-ctx.Done()
	return ctx.Err()
}

func TestAKillOfAnOrphanHonorsItsRecordedGracePeriod(t *testing.T) {
	for name, tc := range map[string]struct {
		orphan *int64
		kills  []*int64
		want   []string
	}{
		"nil keeps the recorded one":      {kills: []*int64{nil}, want: []string{"recorded"}},
		"a value replaces it at once":     {kills: []*int64{new(int64(5))}, want: []string{"recorded", "5s"}},
		"then only a shorter one":         {kills: []*int64{new(int64(5)), new(int64(9)), nil, new(int64(2))}, want: []string{"recorded", "5s", "2s"}},
		"nil keeps Config.OrphanGrace":    {orphan: new(int64(20)), kills: []*int64{nil}, want: []string{"20s"}},
		"shorter than Config.OrphanGrace": {orphan: new(int64(20)), kills: []*int64{new(int64(5))}, want: []string{"20s", "5s"}},
		"longer than Config.OrphanGrace":  {orphan: new(int64(20)), kills: []*int64{new(int64(30))}, want: []string{"20s"}},
		"one second at least":             {orphan: new(int64(0)), kills: []*int64{nil}, want: []string{"1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &graces{}
				w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}, OrphanGrace: tc.orphan})
				require.NoError(t, err)
				stop := run(t, w)
				w.KillOrphan(&runtime.Pod{UID: "lost"})
				synctest.Wait()
				for _, grace := range tc.kills {
					w.Kill("lost", podworker.KillOptions{GracePeriodSeconds: grace})
					synctest.Wait()
				}
				assert.Equal(t, tc.want, h.got)
				stop()
			})
		})
	}
}

func TestARetriedStopOfAnOrphanKeepsItsRecordedGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []*int64
		w, err := podworker.New(podworker.Config{StatusCache: observed{}, Handler: unstoppable{terminate: func(work podworker.SyncRequest) {
			got = append(got, work.GracePeriodSeconds)
		}}})
		require.NoError(t, err)
		stop := run(t, w)
		w.KillOrphan(&runtime.Pod{UID: "lost"})
		synctest.Wait()
		w.Kill("lost", podworker.KillOptions{})
		time.Sleep(time.Minute)
		stop()
		require.Greater(t, len(got), 2)
		for _, grace := range got {
			assert.Nil(t, grace)
		}
	})
}

// unstoppable is a Handler whose Terminate fails.
type unstoppable struct {
	silent
	terminate func(podworker.SyncRequest)
}

func (s unstoppable) Terminate(_ context.Context, w podworker.SyncRequest) error {
	s.terminate(w)
	return assert.AnError
}
