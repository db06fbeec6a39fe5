package status_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func TestDeliveryReportsFailuresAndAWithheldPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := errors.New("forbidden")
		sink := &slowSink{t: t}
		sink.failing(refuse)
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyAlways, "a")
		_, ok := m.Delivery(pod.UID)
		assert.False(t, ok)

		began := time.Now()
		m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		synctest.Wait()
		o, ok := m.Delivery(pod.UID)
		require.True(t, ok)
		assert.True(t, o.Update && !o.Delete && !o.InFlight)
		assert.Equal(t, 1, o.Failures)
		assert.ErrorIs(t, o.Err, refuse)
		assert.Equal(t, began, o.Since)
		assert.Equal(t, began.Add(time.Second), o.RetryAt)

		sink.failing(nil)
		m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{Failed: true, Reason: "Evicted"})
		time.Sleep(time.Minute)
		o, _ = m.Delivery(pod.UID)
		assert.False(t, o.Update)
		assert.Equal(t, v1.PodFailed, o.Withheld, "the reason why the end is not published")
		assert.NotEqual(t, v1.PodFailed, o.Status.Phase)
		assert.NoError(t, o.Err)

		sink.failing(refuse)
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = new(metav1.Now())
		m.Finish(pod)
		time.Sleep(10 * time.Second)
		o, _ = m.Delivery(pod.UID)
		assert.True(t, o.Update && o.Delete)
		assert.Empty(t, o.Withheld)
	})
}
