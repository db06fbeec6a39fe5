package status_test

import (
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

const why = "The node was low on resource: memory. "

var evicted = runtime.Termination{Failed: true, Reason: "Evicted", Message: why, Disruption: why}

// disruption returns the disruption condition: status, reason and message.
func disruption(s *v1.PodStatus) string {
	c := status.Condition(s.Conditions, v1.DisruptionTarget)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + " " + c.Message
}

func TestADisruptionIsReportedOnceAndStays(t *testing.T) { // st-37, ev-54, ev-62
	pod := podOf(v1.RestartPolicyAlways, "a")
	pod.Generation = 3
	f := status.Facts{Pod: pod, Observed: seen(runningC("a", 0)), Now: t0, Termination: evicted}
	f.Previous = status.Compute(f)
	assert.Equal(t, "True TerminationByKubelet "+why, disruption(&f.Previous))
	c := status.Condition(f.Previous.Conditions, v1.DisruptionTarget)
	assert.Equal(t, t0, c.LastTransitionTime.Time)
	assert.Equal(t, int64(3), c.ObservedGeneration)

	f.Termination, f.Now = runtime.Termination{Terminal: true, Disruption: "Pod was terminated in response to imminent node shutdown."}, t0.Add(time.Minute)
	again := status.Compute(f)
	assert.Equal(t, *c, *status.Condition(again.Conditions, v1.DisruptionTarget))
}

func TestAPodThatHadEndedIsNotDisrupted(t *testing.T) { // st-75
	pod := podOf(v1.RestartPolicyNever, "a")
	f := status.Facts{Pod: pod, Observed: stopped(exitedC("a", 0, 0)), Now: t0}
	f.Previous = status.Compute(f)
	f.Termination = evicted
	s := status.Compute(f)
	assert.Equal(t, v1.PodSucceeded, s.Phase)
	assert.Empty(t, disruption(&s))
}

func TestDisruptionConditionsOfOthersAreKept(t *testing.T) { // st-37, st-75
	theirs := v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "PreemptionByScheduler", LastTransitionTime: metav1.NewTime(t0.Add(-time.Hour))}
	pod := podOf(v1.RestartPolicyAlways, "a")
	pod.Status.Conditions = []v1.PodCondition{theirs}
	f := status.Facts{Pod: pod, Observed: seen(runningC("a", 0)), Now: t0}
	f.Previous = status.Compute(f)
	require.Equal(t, "True PreemptionByScheduler ", disruption(&f.Previous))

	withdrawn := theirs
	withdrawn.Status = v1.ConditionFalse
	pod.Status.Conditions = []v1.PodCondition{withdrawn}
	s := status.Compute(f)
	assert.Equal(t, "False PreemptionByScheduler ", disruption(&s), "they may take it back")
	pod.Status.Conditions = nil
	s = status.Compute(f)
	assert.Empty(t, disruption(&s), "and away")

	f.Termination = evicted
	pod.Status.Conditions = []v1.PodCondition{theirs}
	f.Previous = status.Compute(f)
	assert.Equal(t, "True TerminationByKubelet "+why, disruption(&f.Previous), "the node ends it first")

	pod.Status.Phase = v1.PodFailed // another writer did
	s = status.Compute(f)
	assert.Equal(t, "True PreemptionByScheduler ", disruption(&s), "conditions of other writers are left unchanged after the end")
}

func TestADisruptionGoesWithThePhase(t *testing.T) { // st-75: not sooner, and dated then
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyAlways, "a")
		m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		s := m.Report(pod, seen(runningC("a", 0)), nil, evicted)
		assert.NotEmpty(t, disruption(&s), "it is returned to the caller")
		synctest.Wait()
		assert.Empty(t, disruption(new(sink.reported(pod.UID))), "the sink is not")

		time.Sleep(20 * time.Second)
		stoppedAt := time.Now().UTC().Truncate(time.Second)
		m.Report(pod, stopped(exitedC("a", 0, 137)), nil, evicted)
		time.Sleep(20 * time.Second)
		m.Report(pod, stopped(exitedC("a", 0, 137)), nil, evicted)
		m.Finish(pod)
		synctest.Wait()
		last := sink.reported(pod.UID)
		assert.Equal(t, v1.PodFailed, last.Phase)
		assert.Equal(t, stoppedAt, status.Condition(last.Conditions, v1.DisruptionTarget).LastTransitionTime.Time)
	})
}
