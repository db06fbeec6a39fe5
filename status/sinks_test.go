package status_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/status"
)

func TestMemorySinkRemembersAndLetsOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sink status.MemorySink
		pod := podOf("", "a")
		_, ok := sink.Status(pod.UID)
		assert.False(t, ok)

		go func() {
			for _, phase := range []v1.PodPhase{v1.PodPending, v1.PodRunning} {
				time.Sleep(time.Second)
				assert.NoError(t, sink.UpdatePodStatus(t.Context(), pod, v1.PodStatus{Phase: phase}))
			}
			time.Sleep(time.Second)
			assert.NoError(t, sink.DeletePod(t.Context(), pod))
		}()
		isRunning := func(s v1.PodStatus) bool { return s.Phase == v1.PodRunning }
		s, err := sink.Wait(t.Context(), pod.UID, isRunning)
		require.NoError(t, err)
		assert.Equal(t, v1.PodRunning, s.Phase)
		assert.False(t, sink.Deleted(pod.UID))
		_, err = sink.Wait(t.Context(), pod.UID, isRunning)
		require.NoError(t, err, "the present one counts")

		s, err = sink.WaitDeleted(t.Context(), pod.UID)
		require.NoError(t, err)
		assert.Equal(t, v1.PodRunning, s.Phase)
		assert.True(t, sink.Deleted(pod.UID))

		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = sink.Wait(ctx, pod.UID, func(v1.PodStatus) bool { return false })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, `status: wait for pod uid-web, now "Running"`)

		sink.Remove(pod.UID)
		_, ok = sink.Status(pod.UID)
		assert.False(t, ok)
	})
}

type brokenSink struct{}

func (brokenSink) UpdatePodStatus(context.Context, *v1.Pod, v1.PodStatus) error {
	return errors.New("disk full")
}

func (brokenSink) DeletePod(context.Context, *v1.Pod) error { return errors.New("disk full") }

func TestTeeJoinsErrorsAndCallsAll(t *testing.T) {
	var memory status.MemorySink
	pod := podOf("", "a")
	sink := status.Tee(brokenSink{}, &memory)
	assert.ErrorContains(t, sink.UpdatePodStatus(t.Context(), pod, v1.PodStatus{Phase: v1.PodRunning}), "disk full")
	assert.ErrorContains(t, sink.DeletePod(t.Context(), pod), "disk full")
	s, _ := memory.Status(pod.UID)
	assert.Equal(t, v1.PodRunning, s.Phase)
	assert.True(t, memory.Deleted(pod.UID))
	assert.NoError(t, status.Tee().DeletePod(t.Context(), pod))
}
