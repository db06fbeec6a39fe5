package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// Known problems of the providers of virtual-kubelet, each with the test that shows
// its absence here:
//
//  1. names in place of UIDs: TestAPodRecreatedUnderItsNameIsNotMixedUp here
//  2. objects deleted before their pods: TestAnObjectIsNotDeletedBeforeItsPodIsGone here
//  3. tombstones dropped: TestAPodDeletedWithoutAWatchIsTerminated in kube/client
//  4. pods swept once, or while they live: TestOrphansAreTerminatedOnlyAfterTheSourceHasSynced here
//  5. statuses lost, or turned back: TestATerminalStatusOutlivesErrorsOfTheAPI,
//     TestAKilledAgentRunsNoFinishedPodAgain, TestAnErrorOfARunningPodDoesNotMakeItPending,
//     TestAForeignEditOfAStatusIsRepairedAndEchoesAreIgnored here; over a client of an API server
//     TestAStatusChangedByAnotherClientIsRepaired in kube/client
//  6. polls, and callers that wait: TestAPodAtRestIsNotPolledAndNoCallWaitsForTheAPI here
//  7. all Secrets, ConfigMaps and Services of the cluster: TestNothingOfTheWholeClusterIsRead
//     and TestOnlyReferencedObjectsAreRead in kube/client
//  8. a panic on the update of an unknown pod: TestAnUpdateOfAnUnknownPodIsNoPanic here

// An api is the API server as seen by such providers: in memory, with pods by name,
// and statuses that return by its watch.
type api struct {
	source podsource.Memory

	mu      sync.Mutex
	pods    map[string]*v1.Pod // by name
	fail    error              // of every call
	calls   int
	stale   int // calls about a UID that is another's by now
	running func(uid types.UID) bool
	early   []string // deleted while they ran
	log     []string
}

func newAPI() *api { return &api{pods: map[string]*v1.Pod{}} }

func (a *api) showLocked() {
	var pods []*v1.Pod
	for _, name := range slices.Sorted(maps.Keys(a.pods)) {
		pods = append(pods, a.pods[name].DeepCopy())
	}
	a.source.Set(pods...)
}

func (a *api) create(pod *v1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods[pod.Name] = pod.DeepCopy()
	a.showLocked()
}

// change changes the pod of that name, if it exists.
func (a *api) change(name string, change func(*v1.Pod)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if pod := a.pods[name]; pod != nil {
		change(pod)
		a.showLocked()
	}
}

// remove requests the deletion of a pod.
func (a *api) remove(name string) {
	a.change(name, func(p *v1.Pod) { p.DeletionTimestamp = new(metav1.Now()) })
}

// away makes every call fail with err; nil ends that.
func (a *api) away(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail = err
}

func (a *api) get(name string) *v1.Pod {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pods[name].DeepCopy()
}

func (a *api) made() int {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls
}

func (a *api) UpdatePodStatus(_ context.Context, pod *v1.Pod, s v1.PodStatus) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	if a.fail != nil {
		return a.fail
	}
	object := a.pods[pod.Name]
	if object == nil || object.UID != pod.UID {
		a.stale++
		return nil
	}
	object.Status = status.Merge(object.Status, s)
	a.log = append(a.log, pod.Name+" "+string(object.Status.Phase))
	a.showLocked()
	return nil
}

func (a *api) DeletePod(_ context.Context, pod *v1.Pod) error {
	runs := a.running(pod.UID)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	if a.fail != nil {
		return a.fail
	}
	if object := a.pods[pod.Name]; object != nil && object.UID == pod.UID && object.DeletionTimestamp != nil {
		if runs {
			a.early = append(a.early, pod.Name)
		}
		delete(a.pods, pod.Name)
		a.log = append(a.log, pod.Name+" is gone")
		a.showLocked()
	}
	return nil
}

// provide starts an agent for the API.
func (a *api) provide(t *testing.T, rt *runtimetest.Runtime) *spine {
	a.running = func(uid types.UID) bool {
		s, err := rt.PodStatus(context.Background(), uid)
		return err != nil || s.Running()
	}
	return newSpineOf(t, rt, map[string]podsource.PodSource{podsource.APISource: &a.source}, podworker.Hooks{}, a)
}

func TestAPodRecreatedUnderItsNameIsNotMixedUp(t *testing.T) { // 1: #1157, #633
	synctest.Test(t, func(t *testing.T) {
		a, rt := newAPI(), newNode()
		s := a.provide(t, rt)
		for i := range 50 {
			pod := newTestPod("web", v1.RestartPolicyAlways, "serves")
			pod.UID = types.UID(fmt.Sprint("web-", i))
			a.create(pod) // the one before may still be stopping
			time.Sleep(1500 * time.Millisecond)
			if i%2 == 0 {
				a.remove("web")
				time.Sleep(time.Duration(i%5) * 700 * time.Millisecond)
			}
		}
		time.Sleep(2 * time.Minute)
		pod := a.get("web")
		require.NotNil(t, pod)
		assert.EqualValues(t, "web-49", pod.UID)
		assert.Equal(t, v1.PodRunning, pod.Status.Phase)
		assert.Zero(t, pod.Status.ContainerStatuses[0].RestartCount)
		pods, err := rt.Pods(t.Context())
		require.NoError(t, err)
		assert.Len(t, pods, 1, "of the others nothing is left")
		calls, stale := a.made(), a.stale
		assert.LessOrEqual(t, stale, 4*50, "each pod gets its final status, and no more")
		time.Sleep(time.Hour)
		assert.Equal(t, calls, a.made(), "an impossible update is not retried")
		require.NoError(t, s.stop())
	})
}

func TestAnObjectIsNotDeletedBeforeItsPodIsGone(t *testing.T) { // 2
	synctest.Test(t, func(t *testing.T) {
		a, rt := newAPI(), newNode()
		rt.Behave("cannot", fake.Behavior{Fail: &fake.Failure{Reason: "ErrImagePull"}})
		rt.Behave("slow", fake.Behavior{StartDelay: 5 * time.Minute})
		s := a.provide(t, rt)
		for name, image := range map[string]string{"waits": "cannot", "pulls": "slow", "stubborn": "stubborn", "web": "serves"} {
			a.create(newTestPod(name, v1.RestartPolicyAlways, image))
		}
		time.Sleep(20 * time.Second)
		for _, name := range []string{"waits", "pulls", "stubborn", "web"} {
			a.remove(name)
		}
		time.Sleep(20 * time.Second)
		assert.NotNil(t, a.get("stubborn"), "grace or not, it runs")
		assert.Nil(t, a.get("web"))
		time.Sleep(10 * time.Minute)
		for _, name := range []string{"waits", "pulls", "stubborn", "web"} {
			assert.Nil(t, a.get(name), name)
		}
		assert.Empty(t, a.early, "deleted while something of them ran")
		require.NoError(t, s.stop())
	})
}

func TestOrphansAreTerminatedOnlyAfterTheSourceHasSynced(t *testing.T) { // 4: elotl/kip#107
	synctest.Test(t, func(t *testing.T) {
		a, rt := newAPI(), newNode()
		s := a.provide(t, rt)
		a.create(newTestPod("web", v1.RestartPolicyAlways, "serves"))
		a.create(newTestPod("lost", v1.RestartPolicyAlways, "serves"))
		time.Sleep(10 * time.Second)
		require.NoError(t, s.stop())

		// The agent restarts, and receives its pods only an hour later.
		late := newAPI()
		s = late.provide(t, rt)
		time.Sleep(time.Hour)
		for _, name := range []string{"web", "lost"} {
			assert.True(t, s.running(types.UID("uid-"+name)), "a slow start ends no pod")
		}
		bad := true
		var mu sync.Mutex
		rt.Inject(func(c fake.Call) fake.Fault { // and at first the sweep fails
			mu.Lock()
			defer mu.Unlock()
			if bad && c.Method == "KillPod" {
				return fake.Fault{Err: errors.New("timeout")}
			}
			return fake.Fault{}
		})
		late.create(newTestPod("web", v1.RestartPolicyAlways, "serves"))
		time.Sleep(5 * time.Minute)
		assert.True(t, s.running("uid-lost"))
		mu.Lock()
		bad = false
		mu.Unlock()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		assert.False(t, s.running("uid-lost"), "a failed removal is retried")
		web, _ := s.sink.Status("uid-web")
		assert.Zero(t, web.ContainerStatuses[0].RestartCount, "and the desired pod was left alone")
		require.NoError(t, s.stop())
	})
}

func TestATerminalStatusOutlivesErrorsOfTheAPI(t *testing.T) { // 5: #712
	synctest.Test(t, func(t *testing.T) {
		a, rt := newAPI(), newNode()
		s := a.provide(t, rt)
		a.create(newTestPod("job", v1.RestartPolicyNever, "fails"))
		time.Sleep(time.Second)
		a.away(errors.New("etcdserver: request timed out"))
		time.Sleep(time.Hour)
		assert.NotEqual(t, v1.PodFailed, a.get("job").Status.Phase)
		a.away(nil)
		time.Sleep(time.Minute)
		job := a.get("job")
		assert.Equal(t, v1.PodFailed, job.Status.Phase)
		assert.EqualValues(t, 3, job.Status.ContainerStatuses[0].State.Terminated.ExitCode)
		require.NoError(t, s.stop())
	})
}

func TestAKilledAgentRunsNoFinishedPodAgain(t *testing.T) { // 5: #762
	synctest.Test(t, func(t *testing.T) {
		a, rt := newAPI(), newNode()
		s := a.provide(t, rt)
		a.create(newTestPod("job", v1.RestartPolicyNever, "done"))
		time.Sleep(time.Second)
		a.away(errors.New("no route to host"))
		time.Sleep(time.Minute) // it terminates without a notification
		require.NoError(t, s.stop())
		require.Equal(t, v1.PodRunning, a.get("job").Status.Phase)

		a.away(nil)
		began := time.Now()
		s = a.provide(t, rt)
		time.Sleep(10 * time.Minute)
		job := a.get("job")
		assert.Equal(t, v1.PodSucceeded, job.Status.Phase)
		assert.Zero(t, job.Status.ContainerStatuses[0].RestartCount)
		assert.True(t, job.Status.ContainerStatuses[0].State.Terminated.StartedAt.Time.Before(began), "it is the first and only one")
		require.NoError(t, s.stop())
	})
}

func TestAnErrorOfARunningPodDoesNotMakeItPending(t *testing.T) { // 5: #744
	synctest.Test(t, func(t *testing.T) {
		a, rt := newAPI(), newNode()
		s := a.provide(t, rt)
		a.create(newTestPod("web", v1.RestartPolicyAlways, "serves"))
		time.Sleep(10 * time.Second)
		require.Equal(t, v1.PodRunning, a.get("web").Status.Phase)
		rt.Inject(func(c fake.Call) fake.Fault {
			if c.Method == "SyncPod" {
				return fake.Fault{Err: errors.New("the update failed")}
			}
			return fake.Fault{}
		})
		a.change("web", func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} })
		time.Sleep(10 * time.Minute)
		web := a.get("web")
		assert.Equal(t, v1.PodRunning, web.Status.Phase)
		assert.True(t, status.IsReady(&web.Status))
		rt.Inject(nil)
		require.NoError(t, s.stop())
	})
}

func TestAForeignEditOfAStatusIsRepairedAndEchoesAreIgnored(t *testing.T) { // 5: #899; st-71
	synctest.Test(t, func(t *testing.T) {
		a, rt := newAPI(), newNode()
		s := a.provide(t, rt)
		a.create(newTestPod("web", v1.RestartPolicyAlways, "serves"))
		time.Sleep(10 * time.Minute)
		before := a.made()
		assert.LessOrEqual(t, before, 4, "the watch event of an own write is not written again")
		a.change("web", func(p *v1.Pod) { p.Status.Phase, p.Status.ContainerStatuses = v1.PodPending, nil })
		time.Sleep(time.Minute)
		assert.Equal(t, v1.PodRunning, a.get("web").Status.Phase)
		assert.Equal(t, before+1, a.made())

		// A readiness gate that another client sets is no edit, and takes effect at once.
		gated := newTestPod("gated", v1.RestartPolicyAlways, "serves")
		gated.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "lb"}}
		a.create(gated)
		time.Sleep(time.Minute)
		require.False(t, status.IsReady(&a.get("gated").Status))
		a.change("gated", func(p *v1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: "lb", Status: v1.ConditionTrue})
		})
		time.Sleep(time.Second)
		assert.True(t, status.IsReady(&a.get("gated").Status))
		require.NoError(t, s.stop())
	})
}

func TestAPodAtRestIsNotPolledAndNoCallWaitsForTheAPI(t *testing.T) { // 6
	synctest.Test(t, func(t *testing.T) {
		a, rt := newAPI(), newNode()
		s := a.provide(t, rt)
		for i := range 50 {
			a.create(newTestPod(fmt.Sprint("web-", i), v1.RestartPolicyAlways, "serves"))
		}
		time.Sleep(2 * time.Minute)
		looks := 0
		var mu sync.Mutex
		rt.Inject(func(c fake.Call) fake.Fault {
			mu.Lock()
			defer mu.Unlock()
			if c.Method == "PodStatus" {
				looks++
			}
			return fake.Fault{}
		})
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		mu.Lock()
		assert.LessOrEqual(t, looks, 50*2, "virtual-kubelet would have polled 18,000 times")
		mu.Unlock()
		require.NoError(t, s.stop())

		// Reporting a status does not wait until it is written.
		hangs := sinkOf(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		m, err := status.New(status.Config{Sink: hangs, Parallel: 1})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- m.Run(ctx) }()
		began := time.Now()
		for i := range 1000 {
			m.Report(newTestPod(fmt.Sprint("p", i), v1.RestartPolicyAlways, "serves"), &runtime.PodStatus{}, nil, runtime.Termination{})
		}
		assert.Zero(t, time.Since(began))
		cancel()
		require.NoError(t, <-ran)
	})
}

// sinkOf is a sink from a function.
type sinkOf func(ctx context.Context) error

func (f sinkOf) UpdatePodStatus(ctx context.Context, _ *v1.Pod, _ v1.PodStatus) error { return f(ctx) }
func (f sinkOf) DeletePod(ctx context.Context, _ *v1.Pod) error                       { return f(ctx) }

func TestAnUpdateOfAnUnknownPodIsNoPanic(t *testing.T) { // 8
	synctest.Test(t, func(t *testing.T) {
		s := newSpine(t, newNode(), new(podsource.Memory), podworker.Hooks{})
		loop := s.sync
		stranger := newTestPod("stranger", v1.RestartPolicyAlways, "serves")
		loop.ReconcilePods([]*v1.Pod{stranger})
		loop.RemovePods([]*v1.Pod{stranger})
		loop.UpdatePods([]*v1.Pod{stranger})
		loop.UpdatePods([]*v1.Pod{stranger})
		loop.ReconcilePods([]*v1.Pod{stranger})
		assert.Len(t, s.Table().Desired(), 1)
		require.NoError(t, s.stop())
	})
}
