package client_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// newRunningAgent returns an agent whose pods run.
func newRunningAgent(t *testing.T, pods int) *agent {
	t.Helper()
	var objects []*v1.Pod
	for i := range pods {
		objects = append(objects, serving(fmt.Sprintf("web-%02d", i)))
	}
	a := newAgent(t, objects...)
	pass(20 * time.Second)
	for _, pod := range objects {
		require.Equal(t, v1.PodRunning, a.status(pod.Name).Phase)
	}
	a.calls()
	return a
}

// exitAll makes the container of each pod exit. The agent restarts them.
func (a *agent) exitAll(t *testing.T, pods int) {
	t.Helper()
	for i := range pods {
		require.NoError(t, a.runtime.Exit(types.UID(fmt.Sprintf("uid-of-web-%02d", i)), "main", 1))
	}
}

func (a *agent) requireRestarts(t *testing.T, pods, n int) {
	t.Helper()
	for i := range pods {
		s := a.status(fmt.Sprintf("web-%02d", i))
		require.Len(t, s.ContainerStatuses, 1)
		require.EqualValues(t, n, s.ContainerStatuses[0].RestartCount)
		require.NotNil(t, s.ContainerStatuses[0].State.Running)
	}
}

func TestAWatchThatIsDroppedOrTooOldLosesNothing(t *testing.T) { // 410 Gone
	for name, compact := range map[string]bool{"dropped": false, "410": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const pods = 10
				a := newRunningAgent(t, pods)
				a.runtime.Behave("polite", fake.Behavior{StopDelay: time.Second})
				for round := range 5 {
					a.faults.set(about("watch", apitest.Fault{Refuse: true}))
					a.api.DropWatches()
					late := serving(fmt.Sprintf("late-%d", round))
					a.api.Put(late)
					a.api.Put(deleting(a.api.Pod("prod", fmt.Sprintf("web-%02d", round))))
					pass(5 * time.Second)
					if compact {
						a.api.Compact() // the history until now is forgotten
					}
					a.faults.set(nil)
					pass(40 * time.Second)
					assert.Equal(t, v1.PodRunning, a.status(late.Name).Phase, "the pod created meanwhile runs")
					assert.Nil(t, a.api.Pod("prod", fmt.Sprintf("web-%02d", round)), "and the pod deleted meanwhile is gone")
				}
				assert.LessOrEqual(t, a.perMinute(60), resting)
			})
		})
	}
}

func TestRefusedRequestsAreRetriedWithDelays(t *testing.T) { // 429
	for name, fault := range map[string]apitest.Fault{
		"without a time": {Code: http.StatusTooManyRequests}, "with a time": {Code: http.StatusTooManyRequests, RetryAfter: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const pods = 20
				a := newRunningAgent(t, pods)
				a.faults.set(func(apitest.Call) apitest.Fault { return fault })
				a.api.DropWatches()
				a.exitAll(t, pods)
				perMinute := a.perMinute(5)
				t.Logf("%.0f calls a minute, %.1f for each pod", perMinute, perMinute/pods)
				assert.LessOrEqual(t, perMinute/pods, 30.0, "although Retry-After is one second")
				a.faults.set(nil)
				a.calls()
				pass(time.Minute)
				a.requireRestarts(t, pods, 1)
				assert.LessOrEqual(t, len(a.calls()), pods, "no update is sent twice")
				assert.LessOrEqual(t, a.perMinute(60), resting)
			})
		})
	}
}

func TestStatusesFollowSoonAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = 20
		a := newRunningAgent(t, pods)
		a.faults.set(func(apitest.Call) apitest.Fault { return apitest.Fault{Refuse: true} })
		a.api.DropWatches()
		a.exitAll(t, pods)
		pass(10 * time.Minute)
		a.calls()
		a.faults.set(nil)
		a.pods.Retry() // triggered by the heartbeat
		pass(2 * time.Second)
		a.requireRestarts(t, pods, 1)
		patches := slices.DeleteFunc(a.calls(), func(call string) bool { return !strings.HasPrefix(call, "patch ") })
		assert.Len(t, patches, pods, "no update is sent twice")
	})
}
