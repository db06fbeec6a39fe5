//go:build unix

package compare

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestAPodSettlesWhenItDoesNotChange(t *testing.T) {
	w := &watcher{pods: map[string]*watched{}}
	_, ok := w.settled("web", time.Now())
	assert.False(t, ok, "there is no such pod")
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: v1.PodStatus{Phase: v1.PodPending}}
	w.add(pod, false)
	_, ok = w.settled("web", time.Now().Add(quietTime))
	assert.False(t, ok, "it has not started")
	_, ok = w.settled("web", time.Now().Add(patientTime))
	assert.True(t, ok, "it does not start")
	pod.Status.Phase = v1.PodRunning
	w.add(pod, false)
	_, ok = w.settled("web", time.Now())
	assert.False(t, ok, "it has just changed")
	versions, ok := w.settled("web", time.Now().Add(quietTime))
	assert.True(t, ok)
	assert.Equal(t, 2, versions)

	w.add(cache.DeletedFinalStateUnknown{Obj: pod}, true)
	history, deleted := w.history("web")
	assert.True(t, deleted)
	assert.Len(t, history, 3)
	assert.Equal(t, v1.PodPending, history[0].Status.Phase, "a copy of each version")
	_, deleted = w.history("other")
	assert.True(t, deleted)
}

func TestPodsThatAreAboutToStartOrStopAreNotSettled(t *testing.T) {
	waiting := func(reason string) []v1.ContainerStatus {
		return []v1.ContainerStatus{{State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}}}
	}
	sandbox := func(status v1.ConditionStatus) []v1.PodCondition {
		return []v1.PodCondition{{Type: v1.PodReadyToStartContainers, Status: status}}
	}
	for name, c := range map[string]struct {
		status v1.PodStatus
		want   bool
	}{
		"its sandbox runs":       {v1.PodStatus{Phase: v1.PodSucceeded, Conditions: sandbox(v1.ConditionTrue)}, false},
		"its sandbox is stopped": {v1.PodStatus{Phase: v1.PodSucceeded, Conditions: sandbox(v1.ConditionFalse)}, true},
		"new":                    {v1.PodStatus{Phase: v1.PodPending}, false},
		"succeeded":              {v1.PodStatus{Phase: v1.PodSucceeded}, true},
		"failed":                 {v1.PodStatus{Phase: v1.PodFailed}, true},
		"failed, but still runs": {v1.PodStatus{Phase: v1.PodFailed, ContainerStatuses: []v1.ContainerStatus{{State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}}, false},
		"creating":               {v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: waiting("ContainerCreating")}, false},
		"second one starts":      {v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: waiting("PodInitializing")}, false},
		"no image":               {v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: waiting("ErrImageNeverPull")}, true},
		"image cannot be pulled": {v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: waiting("ErrImagePull")}, false},
		"and is not tried again": {v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: waiting("ImagePullBackOff")}, true},
		"init container fails":   {v1.PodStatus{Phase: v1.PodPending, InitContainerStatuses: waiting("CrashLoopBackOff")}, true},
		"crashes":                {v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: waiting("CrashLoopBackOff")}, true},
	} {
		assert.Equal(t, c.want, looksSettled(&v1.Pod{Status: c.status}), name)
	}

	probed := v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{LivenessProbe: new(v1.Probe)}}}
	running := v1.PodStatus{Phase: v1.PodRunning}
	assert.False(t, looksSettled(&v1.Pod{Spec: probed, Status: running}), "the probe may fail")
	probed.RestartPolicy = v1.RestartPolicyAlways
	assert.True(t, looksSettled(&v1.Pod{Spec: probed, Status: running}))
}
