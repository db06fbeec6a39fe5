package status_test

import (
	"bytes"
	"context"
	"encoding/json"
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

		sink.Drop(pod.UID)
		_, ok = sink.Status(pod.UID)
		assert.False(t, ok)
	})
}

func TestJSONLinesCanBeReadBack(t *testing.T) {
	var out bytes.Buffer
	sink := status.NewJSONLines(&out)
	pod := podOf("", "a")
	require.NoError(t, sink.UpdatePodStatus(t.Context(), pod, v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.7"}))
	require.NoError(t, sink.DeletePod(t.Context(), pod))

	dec := json.NewDecoder(&out)
	var update, deletion status.Line
	require.NoError(t, dec.Decode(&update))
	require.NoError(t, dec.Decode(&deletion))
	assert.WithinDuration(t, time.Now(), update.Time, time.Minute)
	assert.Equal(t, "default/web uid-web Running 10.0.0.7", update.Namespace+"/"+update.Name+" "+string(update.UID)+" "+string(update.Phase)+" "+update.Status.PodIP)
	assert.True(t, deletion.Deleted)
	assert.Nil(t, deletion.Status)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestTeeJoinsErrorsAndTellsAll(t *testing.T) { // L-43
	var memory status.MemorySink
	pod := podOf("", "a")
	sink := status.Tee(status.NewJSONLines(brokenWriter{}), &memory)
	assert.ErrorContains(t, sink.UpdatePodStatus(t.Context(), pod, v1.PodStatus{Phase: v1.PodRunning}), "status: write pod default/web: disk full")
	assert.ErrorContains(t, sink.DeletePod(t.Context(), pod), "disk full")
	s, _ := memory.Status(pod.UID)
	assert.Equal(t, v1.PodRunning, s.Phase)
	assert.True(t, memory.Deleted(pod.UID))
	assert.NoError(t, status.Tee().DeletePod(t.Context(), pod))
}
