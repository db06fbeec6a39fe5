package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

var _ status.Sink = (*client.Statuses)(nil)

func TestAChangeIsOnePatch(t *testing.T) { // st-67
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("web"))
		pod := d.api.Pod("prod", "web")
		require.NoError(t, d.UpdatePodStatus(t.Context(), pod, runningStatus()))
		synctest.Wait()
		require.NoError(t, d.UpdatePodStatus(t.Context(), pod, runningStatus()))
		next := runningStatus()
		next.PodIP = "10.0.0.1"
		require.NoError(t, d.UpdatePodStatus(t.Context(), pod, next))
		synctest.Wait()
		pass(time.Hour)

		calls := d.api.Calls()
		assert.Equal(t, []string{"patch pods/status prod/web", "patch pods/status prod/web"}, callsOf(calls), "an empty patch is no call")
		last := d.api.Calls("patch")[1]
		assert.JSONEq(t, `{"metadata":{"uid":"uid-1"},"status":{"podIP":"10.0.0.1"}}`, string(last.Body))
		got := d.api.Pod("prod", "web").Status
		assert.True(t, equality.Semantic.DeepEqual(next, got), "%+v", got)
	})
}

func TestFieldsOfOtherWritersStay(t *testing.T) { // st-74, st-76
	synctest.Test(t, func(t *testing.T) {
		pod := newPod("web")
		pod.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: new("claim-1")}}
		d := newDesk(t, pod)
		d.api.Put(pod)
		pod = d.api.Pod("prod", "web")

		// The gate is set by another client, and the watch has not delivered it yet.
		d.api.DropWatches()
		d.faults.set(about("watch", apitest.Fault{Refuse: true}))
		gated := pod.DeepCopy()
		gated.Status.Conditions = append(gated.Status.Conditions, condition("example.com/gate", v1.ConditionTrue))
		gated.Status.NominatedNodeName = ""
		d.api.Put(gated)

		require.NoError(t, d.UpdatePodStatus(t.Context(), pod, runningStatus()))
		got := d.api.Pod("prod", "web").Status
		assert.Equal(t, v1.PodRunning, got.Phase)
		assert.NotNil(t, status.Condition(got.Conditions, "example.com/gate"))
		assert.NotNil(t, status.Condition(got.Conditions, v1.PodReady))
		assert.Equal(t, pod.Status.ResourceClaimStatuses, got.ResourceClaimStatuses)

		// Stale values of others' fields are not written back.
		d.faults.set(nil)
		pass(time.Minute)
		off := d.api.Pod("prod", "web")
		off.Status.Conditions[0].Status, off.Status.Conditions[1].Status = v1.ConditionFalse, v1.ConditionFalse
		for i := range off.Status.Conditions {
			if off.Status.Conditions[i].Type == v1.PodReady {
				off.Status.Conditions[i].Status = v1.ConditionTrue
			}
		}
		d.api.Put(off)
		synctest.Wait()
		next := runningStatus()
		next.PodIP = "10.0.0.1"
		next.Conditions = append(next.Conditions, condition("example.com/gate", v1.ConditionTrue)) // as the source sent it
		require.NoError(t, d.UpdatePodStatus(t.Context(), pod, next))
		got = d.api.Pod("prod", "web").Status
		assert.Equal(t, v1.ConditionFalse, status.Condition(got.Conditions, "example.com/gate").Status)
		assert.Empty(t, d.api.Calls("get"))
	})
}

func TestAConflictIsReadOnceAndWritten(t *testing.T) { // GET only after conflict
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("web"))
		first := true
		d.faults.set(func(c apitest.Call) apitest.Fault {
			if c.Verb == "patch" && first {
				first = false
				return apitest.Fault{Code: http.StatusConflict}
			}
			return apitest.Fault{}
		})
		require.NoError(t, d.UpdatePodStatus(t.Context(), d.api.Pod("prod", "web"), runningStatus()))
		assert.Equal(t, []string{"patch pods/status prod/web", "get pods prod/web", "patch pods/status prod/web"}, callsOf(d.api.Calls()))

		d.api.Forget()
		d.faults.set(about("patch", apitest.Fault{Code: http.StatusConflict}))
		next := runningStatus()
		next.PodIP = "10.0.0.1"
		require.Error(t, d.UpdatePodStatus(t.Context(), d.api.Pod("prod", "web"), next))
		assert.Len(t, d.api.Calls("patch"), 4, "a conflict that stays is the caller's to retry")
	})
}

// A real API server returned this error, in one of many runs, for a pod that had just
// been recreated.
func TestAUIDThatCannotBeChangedIsAnotherPod(t *testing.T) { // st-66
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("web"))
		web := d.api.Pod("prod", "web")
		d.faults.set(about("watch", apitest.Fault{Refuse: true}))
		d.api.DropWatches()
		synctest.Wait()
		d.api.Remove("pods", "prod", "web")
		second := newPod("web")
		second.UID = "another"
		d.api.Put(second)
		d.api.Forget()
		d.faults.set(about("patch", apitest.Fault{
			Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
			Message: `Pod "web" is invalid: metadata.uid: Invalid value: "uid-of-web": field is immutable`,
		}))
		require.NoError(t, d.UpdatePodStatus(t.Context(), web, failedStatus()))
		assert.Equal(t, []string{"patch pods/status prod/web", "get pods prod/web"}, callsOf(d.api.Calls()))
		assert.Equal(t, v1.PodPending, d.api.Pod("prod", "web").Status.Phase)
	})
}

func TestAPodThatIsGoneIsNoError(t *testing.T) { // st-66; virtual-kubelet gets this wrong
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("web"), newPod("db"), newPod("cache"))
		web, db, cache := d.api.Pod("prod", "web"), d.api.Pod("prod", "db"), d.api.Pod("prod", "cache")
		d.faults.set(about("watch", apitest.Fault{Refuse: true}))
		d.api.DropWatches()
		synctest.Wait()
		d.api.Remove("pods", "prod", "web")
		d.api.Remove("pods", "prod", "db")
		d.api.Put(newPod("db")) // another one under its name
		require.NoError(t, d.UpdatePodStatus(t.Context(), web, runningStatus()))
		require.NoError(t, d.UpdatePodStatus(t.Context(), db, failedStatus()))
		assert.Equal(t, v1.PodPending, d.api.Pod("prod", "db").Status.Phase, "the status of one is not applied to the other")

		// And so is a pod whose deletion the watch has delivered: without a call.
		d.faults.set(nil)
		d.api.Remove("pods", "prod", "cache")
		pass(time.Minute)
		d.api.Forget()
		require.NoError(t, d.UpdatePodStatus(t.Context(), cache, runningStatus()))
		require.NoError(t, d.UpdatePodStatus(t.Context(), web, runningStatus()))
		require.NoError(t, d.DeletePod(t.Context(), db))
		pass(time.Hour)
		assert.Empty(t, callsOf(d.api.Calls()))
		assert.NotNil(t, d.api.Pod("prod", "db"))
	})
}

// A failed call is an error that the manager retries; no status is lost, and there is
// no hot loop.
func TestAStatusArrivesAfterTrouble(t *testing.T) { // st-68; virtual-kubelet gets this wrong
	for name, tc := range map[string]struct {
		fault apitest.Fault
		most  int // calls a minute, in the long run
	}{
		"partitioned":          {apitest.Fault{Refuse: true}, 2},
		"no answer":            {apitest.Fault{Hang: true}, 2},
		"internal error":       {apitest.Fault{Code: 500}, 2},
		"forbidden":            {apitest.Fault{Code: 403}, 2},
		"unauthorized":         {apitest.Fault{Code: 401}, 2},
		"invalid":              {apitest.Fault{Code: 422}, 2},
		"throttled":            {apitest.Fault{Code: 429}, 2},
		"throttled for 2s":     {apitest.Fault{Code: 429, RetryAfter: 2}, 15},
		"throttled for 1m":     {apitest.Fault{Code: 429, RetryAfter: 60}, 2},
		"too large":            {apitest.Fault{Code: 413}, 4},
		"conflict":             {apitest.Fault{Code: 409}, 8},
		"unavailable":          {apitest.Fault{Code: 503}, 2},
		"answers are lost":     {apitest.Fault{LoseAnswer: true}, 2},
		"slow beyond patience": {apitest.Fault{Latency: time.Hour}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, newPod("web"))
				m, err := status.New(status.Config{Sink: d})
				require.NoError(t, err)
				running(t, m.Run)
				d.faults.set(about("patch", tc.fault))
				pod := d.api.Pod("prod", "web")
				m.Report(pod, &runtime.PodStatus{UID: pod.UID, Containers: []runtime.ContainerStatus{{ID: "c1", Name: "main", State: runtime.ContainerExited, ExitCode: 3}}}, nil, runtime.Termination{Terminal: true})
				m.Finish(pod)
				pass(30 * time.Minute)
				d.api.Forget()
				pass(30 * time.Minute)
				calls := len(callsOf(d.api.Calls()))
				t.Logf("%d calls in 30 minutes", calls)
				assert.LessOrEqual(t, calls, 30*tc.most)

				d.faults.set(nil)
				pass(2 * time.Minute)
				got := d.api.Pod("prod", "web").Status
				assert.Equal(t, v1.PodFailed, got.Phase)
				d.api.Forget()
				pass(time.Hour)
				assert.Empty(t, callsOf(d.api.Calls()), "and that is all")
			})
		})
	}
}

func TestARefusalIsAnEventOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("web"))
		d.faults.set(about("patch", apitest.Fault{Code: 403, Message: "nodes may not"}))
		for range 3 {
			err := d.UpdatePodStatus(t.Context(), d.api.Pod("prod", "web"), runningStatus())
			require.EqualError(t, err, "client: patch status: nodes may not")
		}
		assert.Equal(t, []string{"Warning FailedToUpdateStatus API server rejects the pod status: nodes may not"}, d.recorded())
	})
}

func TestACallEndsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("web"))
		d.faults.set(about("patch", apitest.Fault{Hang: true}))
		begin := time.Now()
		err := d.UpdatePodStatus(t.Context(), d.api.Pod("prod", "web"), runningStatus())
		require.ErrorContains(t, err, "no response within 20s")
		assert.Equal(t, 20*time.Second, time.Since(begin))

		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.ErrorIs(t, d.UpdatePodStatus(ctx, d.api.Pod("prod", "web"), runningStatus()), context.DeadlineExceeded)
	})
}

// The kubelet takes 30 s.
func TestAHundredPodsDrainInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pods []*v1.Pod
		for i := range 100 {
			pods = append(pods, newPod(fmt.Sprintf("web-%03d", i)))
		}
		d := newDesk(t, pods...)
		d.faults.set(about("patch", apitest.Fault{Latency: 50 * time.Millisecond}))
		for i := range pods {
			pods[i] = d.api.Pod("prod", pods[i].Name)
		}
		// Not through a manager, which would make fewer of them: each change is
		// written, eight at a time as the manager has it.
		begin := time.Now()
		work := make(chan *v1.Pod)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for pod := range work {
					for change := range 3 {
						s := runningStatus()
						s.PodIP = fmt.Sprintf("10.0.0.%d", change)
						assert.NoError(t, d.UpdatePodStatus(t.Context(), pod, s))
					}
				}
			})
		}
		for _, pod := range pods {
			work <- pod
		}
		close(work)
		wg.Wait()
		took := time.Since(begin)
		t.Logf("300 changes of 100 pods in %v", took)
		assert.Less(t, took, 2500*time.Millisecond)
		assert.Len(t, callsOf(d.api.Calls()), 300)
	})
}

func TestAStatusThatIsTooLargeIsShortened(t *testing.T) {
	for name, refusal := range map[string]apitest.Fault{
		"by the server":    {Code: 413, Message: "limit is 3145728"},
		"by its store":     {Code: 500, Message: "etcdserver: request is too large"},
		"by its validator": {Code: 422, Message: "status.message: Too long: may not be more than 32768 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, newPod("web"))
				d.faults.set(func(c apitest.Call) apitest.Fault {
					if c.Verb == "patch" && len(c.Body) > 20_000 {
						return refusal
					}
					return apitest.Fault{}
				})
				big := failedStatus()
				big.ContainerStatuses[0].State.Terminated.Message = strings.Repeat("ö", 6000)
				big.ContainerStatuses[0].State.Terminated.Reason = "Error"
				big.Message = strings.Repeat("x", 50_000)
				for i := range 300 {
					big.ContainerStatuses[0].VolumeMounts = append(big.ContainerStatuses[0].VolumeMounts,
						v1.VolumeMountStatus{Name: fmt.Sprintf("volume-%d", i), MountPath: strings.Repeat("p", 100)})
				}
				require.NoError(t, d.UpdatePodStatus(t.Context(), d.api.Pod("prod", "web"), big))
				got := d.api.Pod("prod", "web").Status
				assert.Equal(t, v1.PodFailed, got.Phase)
				assert.Equal(t, int32(1), got.ContainerStatuses[0].State.Terminated.ExitCode)
				assert.Equal(t, "Error", got.ContainerStatuses[0].State.Terminated.Reason)
				assert.True(t, strings.HasSuffix(got.ContainerStatuses[0].State.Terminated.Message, "..."))
				assert.Len(t, d.api.Calls("patch"), 3)
				require.NotEmpty(t, d.recorded())
				assert.Contains(t, d.recorded()[0], "is shortened: "+refusal.Message)
				assert.Len(t, big.Message, 50_000, "the caller's status is not changed")

				// It is not tried in full each time, and not taken for foreign.
				d.api.Forget()
				big.PodIP = "10.0.0.1"
				require.NoError(t, d.UpdatePodStatus(t.Context(), d.api.Pod("prod", "web"), big))
				pass(time.Hour)
				assert.Len(t, callsOf(d.api.Calls()), 1)
			})
		})
	}
}

// An API server that is away for two minutes while things change.
func TestNoUpdateIsRepeatedAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pods []*v1.Pod
		for i := range 30 {
			pods = append(pods, newPod(fmt.Sprintf("web-%02d", i)))
		}
		d := newDesk(t, pods...)
		m, err := status.New(status.Config{Sink: d})
		require.NoError(t, err)
		running(t, m.Run)
		d.faults.set(func(apitest.Call) apitest.Fault { return apitest.Fault{Refuse: true} })
		d.api.DropWatches()
		report := func(i int, state runtime.ContainerState) {
			m.Report(d.api.Pod("prod", pods[i].Name), &runtime.PodStatus{Containers: []runtime.ContainerStatus{{ID: "c1", Name: "main", State: state}}}, nil, runtime.Termination{})
		}
		for minute := range 4 {
			for i := range pods {
				report(i, []runtime.ContainerState{runtime.ContainerCreated, runtime.ContainerRunning}[minute%2])
			}
			pass(30 * time.Second)
		}
		d.api.Forget()
		d.faults.set(nil)
		pass(2 * time.Minute)
		for i := range pods {
			assert.Equal(t, v1.PodRunning, d.api.Pod("prod", pods[i].Name).Status.Phase)
		}
		assert.Len(t, d.api.Calls("patch"), len(pods), "one write each")
	})
}

func TestALostAnswerIsNotWrittenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("web"))
		pod := d.api.Pod("prod", "web")
		d.faults.set(about("patch", apitest.Fault{LoseAnswer: true}))
		require.ErrorIs(t, d.UpdatePodStatus(t.Context(), pod, runningStatus()), apitest.ErrRefused)
		d.faults.set(nil)
		synctest.Wait()
		require.NoError(t, d.UpdatePodStatus(t.Context(), pod, runningStatus()))
		assert.Len(t, d.api.Calls("patch"), 1, "the watch has delivered the result")
	})
}

func TestAWriteAfterALostAnswerReplacesWhatThatHasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("web"))
		pod := d.api.Pod("prod", "web")
		unready := runningStatus()
		unready.Conditions = []v1.PodCondition{condition(v1.PodReady, v1.ConditionFalse)}
		require.NoError(t, d.UpdatePodStatus(t.Context(), pod, unready))
		synctest.Wait()

		// The pod becomes ready, and fails before the watch has delivered that.
		d.faults.set(func(c apitest.Call) apitest.Fault {
			return apitest.Fault{LoseAnswer: c.Verb == "patch", Refuse: c.Verb == "watch"}
		})
		d.api.DropWatches()
		require.Error(t, d.UpdatePodStatus(t.Context(), pod, runningStatus()))
		d.faults.set(about("watch", apitest.Fault{Refuse: true}))
		require.NoError(t, d.UpdatePodStatus(t.Context(), pod, failedStatus()))

		got := d.api.Pod("prod", "web").Status
		assert.Equal(t, v1.PodFailed, got.Phase)
		assert.Equal(t, v1.ConditionFalse, status.Condition(got.Conditions, v1.PodReady).Status)
	})
}

func TestAPatchIsWhatTheAPITakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("web"))
		require.NoError(t, d.UpdatePodStatus(t.Context(), d.api.Pod("prod", "web"), runningStatus()))
		var patch map[string]any
		require.NoError(t, json.Unmarshal(d.api.Calls("patch")[0].Body, &patch))
		assert.ElementsMatch(t, []string{"metadata", "status"}, keysOf(patch))
		assert.Equal(t, map[string]any{"uid": "uid-1"}, patch["metadata"], "the precondition")
	})
}

func keysOf(m map[string]any) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

func TestConfigOfStatuses(t *testing.T) {
	conn := connect(t, new(apitest.Server))
	pods := newPods(t, new(apitest.Server))
	for want, cfg := range map[string]client.StatusesConfig{
		"client: StatusesConfig.Client is nil":       {Pods: pods},
		"client: StatusesConfig.Pods is nil":         {Client: conn.API},
		"client: StatusesConfig.Timeout is negative": {Client: conn.API, Pods: pods, Timeout: -1},
	} {
		_, err := client.NewStatuses(cfg)
		require.EqualError(t, err, want)
	}
}
