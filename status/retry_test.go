package status_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func TestFailedCallsAreRepeatedWithBackOff(t *testing.T) { // st-68
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begin := time.Now()
		sink := &slowSink{t: t, fail: func(call int) error {
			at = append(at, time.Since(begin))
			if call <= 5 {
				return errors.New("no route to host")
			}
			return nil
		}}
		m := started(t, status.Config{Sink: sink, RetryMin: time.Second, RetryMax: 5 * time.Second})
		pod := podOf(v1.RestartPolicyAlways, "a")
		m.Report(pod, seen(), nil, runtime.Termination{})
		time.Sleep(2 * time.Second)
		m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{}) // does not jump the queue
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, 1e9, 3e9, 7e9, 12e9, 17e9}, at)
		assert.Equal(t, []string{"Running ready=1/1 restarts=0 ip=10.0.0.7"}, sink.took(pod.UID))
	})
}

func TestRetrySendsPendingStatusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyAlways, "a")
		sink.failing(errors.New("away"))
		m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		time.Sleep(10*time.Minute + time.Millisecond) // once a minute by now
		before := sink.made()
		m.Retry()
		synctest.Wait()
		assert.Equal(t, before+1, sink.made())
		time.Sleep(50 * time.Second)
		assert.Equal(t, before+1, sink.made(), "it was not: the pause is as long as before")
		sink.failing(nil)
		m.Retry()
		synctest.Wait()
		assert.Equal(t, v1.PodRunning, sink.reported(pod.UID).Phase)
		made := sink.made()
		m.Retry()
		time.Sleep(time.Hour)
		assert.Equal(t, made, sink.made(), "there is nothing to send")
	})
}
