package status_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// shows returns the pod as its source delivers it, with that status.
func shows(pod *v1.Pod, s v1.PodStatus, edit func(*v1.PodStatus)) *v1.Pod {
	pod = pod.DeepCopy()
	pod.Status = *s.DeepCopy()
	if edit != nil {
		edit(&pod.Status)
	}
	return pod
}

func notReady(s *v1.PodStatus) {
	status.Condition(s.Conditions, v1.PodReady).Status = v1.ConditionFalse
}

func TestOverwrittenStatusesAreRepaired(t *testing.T) { // st-71, src-7, sl-25, virtual-kubelet #899
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t}
		var again []bool
		m := started(t, status.Config{Sink: sink, Hooks: status.Hooks{Delivered: func(i status.DeliveredInfo) {
			again = append(again, i.Correction)
			assert.False(t, i.Correction && i.Latency != 0)
		}}})
		pod := podOf(v1.RestartPolicyAlways, "a")
		reported := m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		synctest.Wait()
		require.Equal(t, 1, sink.made())

		m.Reconcile(shows(pod, reported, nil)) // the echo of our own write
		time.Sleep(time.Hour)
		assert.Equal(t, 1, sink.made(), "all is as it should be")

		m.Reconcile(shows(pod, reported, notReady))
		time.Sleep(500 * time.Millisecond)
		o, ok := m.Delivery(pod.UID)
		require.True(t, ok)
		assert.True(t, o.Overwritten && !o.Update && !o.Delete, "the reason of the repeated update is available")
		time.Sleep(time.Second)
		assert.Equal(t, 2, sink.made())
		assert.True(t, status.IsReady(new(sink.reported(pod.UID))))
		synctest.Wait()
		assert.Equal(t, []bool{false, true}, again)
	})
}

func TestAnEchoOfAnEarlierWriteIsNoEdit(t *testing.T) { // st-71
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t, latency: 100 * time.Millisecond}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyAlways, "a")
		first := m.Report(pod, seen(), nil, runtime.Termination{})
		time.Sleep(200 * time.Millisecond)
		second := m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		time.Sleep(50 * time.Millisecond)
		m.Reconcile(shows(pod, first, nil)) // while the second is in progress
		time.Sleep(200 * time.Millisecond)
		m.Reconcile(shows(pod, second, nil))
		time.Sleep(time.Hour)
		assert.Equal(t, 2, sink.made())
	})
}

func TestFieldsOfOthersMayChange(t *testing.T) { // st-35, st-49, lq-31
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyAlways, "a")
		reported := m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		synctest.Wait()
		m.Reconcile(shows(pod, reported, func(s *v1.PodStatus) {
			s.Conditions = append(s.Conditions, condition("lb", v1.ConditionTrue, ""), condition(v1.DisruptionTarget, v1.ConditionTrue, "EvictionByEvictionAPI"))
			s.NominatedNodeName = "other"
		}))
		time.Sleep(time.Hour)
		assert.Equal(t, 1, sink.made())
	})
}

func TestAStatusThatTheAPIDropsIsNotWrittenRepeatedly(t *testing.T) { // st-71, no hot loop
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyAlways, "a")
		reported := m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		synctest.Wait()
		drops := func(s *v1.PodStatus) { s.QOSClass = "" } // an API that does not know the field
		for range 60 * 10 {                                // each second, after a write or for any other reason
			m.Reconcile(shows(pod, reported, drops))
			time.Sleep(time.Second)
		}
		inTenMinutes := sink.made()
		assert.LessOrEqual(t, inTenMinutes, 11, "with growing pauses")
		for range 60 * 60 {
			m.Reconcile(shows(pod, reported, drops))
			time.Sleep(time.Second)
		}
		assert.LessOrEqual(t, sink.made()-inTenMinutes, 7, "finally 10 minutes apart")

		before := sink.made()
		m.Report(pod, seen(exitedC("a", 0, 1)), nil, runtime.Termination{})
		synctest.Wait()
		assert.Equal(t, before+1, sink.made(), "news waits for no pause")
	})
}

func TestForgottenAndDeletedPodsAreNotWrittenAgain(t *testing.T) { // inv-9
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyAlways, "a")
		m.Reconcile(pod) // no status was reported
		reported := m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		synctest.Wait()
		m.Reconcile(shows(pod, reported, notReady))
		forget(m, pod.UID)
		m.Reconcile(shows(pod, reported, notReady))
		time.Sleep(time.Hour)
		log := sink.took(pod.UID)
		assert.Equal(t, "deleted", log[len(log)-1])
		assert.LessOrEqual(t, len(log), 3)
	})
}

func TestAClockJumpCausesNoWrite(t *testing.T) { // bad input: clock skew
	pod := podOf(v1.RestartPolicyAlways, "a")
	f := status.Facts{Pod: pod, Observed: seen(runningC("a", 0)), Now: t0}
	reported := status.Compute(f)
	for _, jump := range []time.Duration{-24 * time.Hour, 24 * time.Hour, -100 * 365 * 24 * time.Hour} {
		f.Now, f.Previous = t0.Add(jump), reported
		again := status.Compute(f)
		assert.Equal(t, reported, again)
		f.Previous, pod.Status = v1.PodStatus{}, reported // and after a restart of the agent
		again = status.Compute(f)
		assert.True(t, status.Equal(&reported, &again))
	}
}
