package status_test

import (
	"context"
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

// A correction is delivered by whichever of Run and Flush takes it first. Each
// case fixes that order by the time of the Flush, since the correction becomes
// due after a second.
func TestAnInterruptedCorrectionStaysOutstandingAndIsRetried(t *testing.T) {
	const latency = 10 * time.Second // of the sink: every deadline below interrupts a call
	for name, tc := range map[string]struct {
		flushAt   time.Duration // after the edit; within the first second Flush takes it, later Run
		stopRunAt time.Duration // zero: Run continues
		within    time.Duration // deadline of the Flush
		flushed   bool          // the Flush returns nil
		delivered time.Duration // after the edit
	}{
		"Flush takes it, and is interrupted": {flushAt: 500 * time.Millisecond, within: time.Second, delivered: 1500*time.Millisecond + latency},
		"Run takes it, Flush is interrupted": {flushAt: 2 * time.Second, within: time.Second, delivered: time.Second + latency},
		"Run is interrupted during a Flush":  {flushAt: 2 * time.Second, stopRunAt: 5 * time.Second, within: time.Minute, flushed: true, delivered: 5*time.Second + latency},
		"Run is interrupted before a Flush":  {flushAt: 20 * time.Second, stopRunAt: 5 * time.Second, within: time.Minute, flushed: true, delivered: 20*time.Second + latency},
		"both are interrupted":               {flushAt: 2 * time.Second, stopRunAt: 2500 * time.Millisecond, within: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []time.Time
				sink := &slowSink{t: t, latency: latency}
				m, err := status.New(status.Config{Sink: sink, Hooks: status.Hooks{Delivered: func(i status.DeliveredInfo) {
					if i.Correction && i.Err == nil {
						at = append(at, time.Now())
					}
				}}})
				require.NoError(t, err)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				ran := make(chan error, 1)
				go func() { ran <- m.Run(ctx) }()
				pod := podOf(v1.RestartPolicyAlways, "a")
				reported := m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
				time.Sleep(latency + time.Second)

				edited := time.Now()
				m.Reconcile(shows(pod, reported, notReady))
				if tc.stopRunAt != 0 {
					time.AfterFunc(tc.stopRunAt, stop)
				}
				time.Sleep(tc.flushAt)
				flush, done := context.WithTimeout(t.Context(), tc.within)
				defer done()
				err = m.Flush(flush)
				o, _ := m.Delivery(pod.UID)
				if tc.flushed {
					require.NoError(t, err)
					assert.False(t, o.Overwritten)
				} else {
					require.ErrorContains(t, err, "1 pods with undelivered statuses")
					assert.True(t, o.Overwritten)
				}
				time.Sleep(24 * time.Hour)
				synctest.Wait() // at is written by the hook
				if tc.delivered == 0 {
					require.Empty(t, at)
					require.NoError(t, m.Flush(t.Context()), "the next one delivers it")
					assert.Len(t, at, 1)
				} else if assert.Len(t, at, 1) {
					assert.Equal(t, tc.delivered, at[0].Sub(edited))
				}
				o, _ = m.Delivery(pod.UID)
				assert.False(t, o.Overwritten)
				stop()
				require.NoError(t, <-ran)
			})
		})
	}
}

// An edit that arrives during DeletePod must not be corrected: the object has been
// deleted then.
func TestAnEditDuringTheDeletionIsNotCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t, latency: time.Second}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyAlways, "a")
		reported := m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		time.Sleep(2 * time.Second)
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = new(metav1.Now())
		m.Finish(pod)
		time.Sleep(1500 * time.Millisecond) // its last status is delivered, DeletePod is in progress
		m.Reconcile(shows(pod, reported, notReady))
		time.Sleep(time.Hour)
		took := sink.took(pod.UID)
		require.Len(t, took, 3)
		assert.Equal(t, "deleted", took[2])
	})
}
