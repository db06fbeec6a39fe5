package provider_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// A node is a running Provider and the statuses that it has reported.
type node struct {
	*provider.Provider
	t    *testing.T
	rt   *runtimetest.Runtime
	stop func()

	mu       sync.Mutex
	reported map[types.UID][]v1.PodStatus
}

// start runs a Provider and passes pods to it.
func start(t *testing.T, rt *runtimetest.Runtime, pods ...*v1.Pod) *node {
	p, err := provider.New(provider.Config{Runtime: rt})
	require.NoError(t, err)
	n := &node{Provider: p, t: t, rt: rt, reported: map[types.UID][]v1.PodStatus{}}
	p.NotifyPods(t.Context(), func(pod *v1.Pod) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.reported[pod.UID] = append(n.reported[pod.UID], pod.Status)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	n.stop = func() {
		cancel()
		require.NoError(t, <-done)
	}
	for _, pod := range pods {
		require.NoError(t, p.CreatePod(t.Context(), pod))
	}
	return n
}

func (n *node) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// running returns the number of running containers of a pod.
func (n *node) running(uid types.UID) (count int) {
	pods, err := n.rt.Pods(n.t.Context())
	require.NoError(n.t, err)
	for _, pod := range pods {
		for _, c := range pod.Containers {
			if pod.UID == uid && c.State == runtime.ContainerRunning {
				count++
			}
		}
	}
	return count
}

func (n *node) reports(uid types.UID) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.reported[uid])
}

// last returns the status reported last.
func (n *node) last(uid types.UID) *v1.PodStatus {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.reported[uid]
	require.NotEmpty(n.t, all, "no status of %s was reported", uid)
	return &all[len(all)-1]
}

func web(uid string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID(uid)},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)),
			Containers: []v1.Container{{Name: "app", Image: "web:1"}},
		},
	}
}

func named(pod *v1.Pod, name string) *v1.Pod {
	pod.Name = name
	return pod
}

func deleted(pod *v1.Pod) *v1.Pod {
	pod.DeletionTimestamp = new(metav1.Now())
	return pod
}

func isNotFound(err error) bool {
	known, ok := errors.AsType[interface {
		error
		NotFound() bool
	}](err)
	return ok && known.NotFound() && errors.Is(err, runtime.ErrNotFound)
}

func TestADeletedPodHasItsGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("web:1", fake.Behavior{StopDelay: 10 * time.Second})
		n := start(t, rt, web("a"))
		defer n.stop()
		n.after(time.Second)
		assert.True(t, status.IsReady(n.last("a")))
		got, err := n.GetPod(t.Context(), "default", "web")
		require.NoError(t, err)
		assert.Equal(t, v1.PodRunning, got.Status.Phase)

		require.NoError(t, n.DeletePod(t.Context(), deleted(web("a"))))
		n.after(5 * time.Second)
		assert.Nil(t, n.last("a").ContainerStatuses[0].State.Terminated)
		assert.Equal(t, 1, n.running("a"))
		_, err = n.GetPod(t.Context(), "default", "web")
		assert.True(t, isNotFound(err), "%v", err)
		require.NoError(t, n.UpdatePod(t.Context(), web("a")), "it does not revoke the deletion")
		pods, err := n.GetPods(t.Context())
		require.NoError(t, err)
		require.Len(t, pods, 1)
		assert.NotNil(t, pods[0].DeletionTimestamp)
		_, err = n.GetPodStatus(t.Context(), "default", "web")
		require.NoError(t, err)

		n.after(20 * time.Second)
		require.NotNil(t, n.last("a").ContainerStatuses[0].State.Terminated)
		assert.EqualValues(t, 143, n.last("a").ContainerStatuses[0].State.Terminated.ExitCode)
		pods, err = n.GetPods(t.Context())
		require.NoError(t, err)
		assert.Empty(t, pods)
		_, err = n.GetPodStatus(t.Context(), "default", "web")
		assert.True(t, isNotFound(err), "%v", err)
		assert.True(t, isNotFound(n.DeletePod(t.Context(), web("a"))))
	})
}

func TestAPodIsReplacedUnderItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, requested := range []bool{true, false} { // DeletePod was called, or not, as after an interrupted watch
			rt := new(runtimetest.Runtime)
			rt.Behave("web:1", fake.Behavior{StopDelay: 10 * time.Second})
			n := start(t, rt, web("a"))
			n.after(time.Second)
			if requested {
				require.NoError(t, n.DeletePod(t.Context(), deleted(web("a"))))
			}
			n.after(time.Second)
			before := n.reports("a")
			require.NoError(t, n.CreatePod(t.Context(), web("b")))
			n.after(time.Second)
			got, err := n.GetPod(t.Context(), "default", "web")
			require.NoError(t, err)
			assert.EqualValues(t, "b", got.UID)
			assert.Equal(t, 1, n.running("a"), "its grace period is not over")
			assert.Equal(t, 1, n.running("b"))
			n.after(time.Minute)
			pods, err := n.GetPods(t.Context())
			require.NoError(t, err)
			assert.Len(t, pods, 1)
			assert.True(t, status.IsReady(n.last("b")))
			assert.Zero(t, n.running("a"))
			assert.Equal(t, 1, n.running("b"))
			assert.Equal(t, before, n.reports("a"), "virtual-kubelet would attribute them to the new pod")
			n.stop()
		}
	})
}

func TestRunningPodsAreAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("web:1", fake.Behavior{StopDelay: time.Second})
		first := start(t, rt, web("a"), named(web("old"), "old"), named(web("leaving"), "leaving"))
		first.after(time.Second)
		first.stop()

		second := start(t, rt)
		defer second.stop()
		second.after(10 * time.Second)
		assert.Equal(t, 1, second.running("a"), "no pod has been passed yet")
		listed, err := second.GetPods(t.Context())
		require.NoError(t, err)
		require.Len(t, listed, 3)
		require.Equal(t, "old", listed[1].Name)
		require.NoError(t, second.DeletePod(t.Context(), listed[1])) // the API does not have it
		require.NoError(t, second.DeletePod(t.Context(), deleted(named(web("leaving"), "leaving"))))
		require.NoError(t, second.CreatePod(t.Context(), web("a")))
		second.after(30 * time.Second)
		assert.True(t, status.IsReady(second.last("a")))
		assert.Zero(t, second.last("a").ContainerStatuses[0].RestartCount)
		assert.Equal(t, 1, second.running("a"))
		assert.Zero(t, second.running("old"))
		assert.Zero(t, second.running("leaving"))
		assert.NotNil(t, second.last("leaving").ContainerStatuses[0].State.Terminated, "its final status is reported")
	})
}

func TestFinishedPodsDoNotDelayAdoption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("job", fake.Behavior{Exit: &fake.Exit{After: time.Second}})
		job := named(web("job"), "job")
		job.Spec.RestartPolicy, job.Spec.Containers[0].Image = v1.RestartPolicyNever, "job"
		first := start(t, rt, job)
		first.after(time.Minute)
		require.Equal(t, v1.PodSucceeded, first.last("job").Phase)
		first.stop()

		second := start(t, rt, web("a")) // virtual-kubelet does not pass finished pods
		defer second.stop()
		second.after(time.Second)
		assert.True(t, status.IsReady(second.last("a")))
	})
}

func TestPodsThatAreNotPassedAreTerminated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		first := start(t, rt, web("a"))
		first.after(time.Second)
		first.stop()
		second := start(t, rt)
		defer second.stop()
		second.after(50 * time.Second)
		assert.Equal(t, 1, second.running("a"))
		second.after(2 * time.Minute)
		assert.Zero(t, second.running("a"))
	})
}

func TestRunWaitsForTheRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		first := start(t, rt, web("a"))
		first.after(time.Second)
		first.stop()

		rt.Inject(func(c fake.Call) fake.Fault {
			return fake.Fault{Err: errors.New("connection refused")}
		})
		second := start(t, rt)
		defer second.stop()
		second.after(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := second.GetPods(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		leaving := deleted(web("a"))
		require.NoError(t, second.DeletePod(t.Context(), leaving), "it may run")
		rt.Inject(nil)
		second.after(time.Minute)
		assert.Zero(t, second.running("a"))
		assert.NotNil(t, second.last("a").ContainerStatuses[0].State.Terminated)
	})
}

func TestRunCanBeCalledOnce(t *testing.T) {
	p, err := provider.New(provider.Config{Runtime: new(runtimetest.Runtime)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, p.Run(ctx))
	assert.EqualError(t, p.Run(ctx), "provider: Provider.Run was called before")
}

func TestInvalidArgumentsAreErrors(t *testing.T) {
	p, err := provider.New(provider.Config{Runtime: new(runtimetest.Runtime)})
	require.NoError(t, err)
	assert.EqualError(t, p.CreatePod(t.Context(), named(web(""), "y")), "provider: pod default/y has no UID")
	outside := web("y")
	outside.Namespace = ""
	assert.EqualError(t, p.CreatePod(t.Context(), outside), "provider: pod "+outside.Name+" (y) has no namespace")
	_, err = provider.New(provider.Config{})
	assert.EqualError(t, err, "provider: Config.Runtime is nil")
	_, err = p.GetPod(t.Context(), "default", "web")
	assert.EqualError(t, err, "provider: pod default/web: not found")
}

// virtual-kubelet calls UpdatePod for a recreated pod, because GetPod's result differs from
// it, and DeletePod with the pod of GetPod if the object is missing.
func TestGetPodMarksThePodWithItsUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("web:1", fake.Behavior{StopDelay: time.Second}) // the pod is there after DeletePod
		n := start(t, rt, web("a"))
		defer n.stop()
		n.after(time.Second)
		pod, err := n.GetPod(t.Context(), "default", "web")
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"provider.kubeparts.io/uid": "a"}, pod.Annotations)
		require.NoError(t, n.DeletePod(t.Context(), pod))
		all, err := n.GetPods(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Empty(t, all[0].Annotations, "they would be written to the API with the status")
		assert.NotNil(t, all[0].DeletionTimestamp)
	})
}
