package provider_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/examples/virtualkubelet/provider"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// A life is a Provider at work, and what virtual-kubelet was told by it.
type life struct {
	*provider.Provider
	t    *testing.T
	rt   *runtimetest.Runtime
	told map[types.UID][]v1.PodStatus // guarded by the bubble: read after Wait
	stop func()
}

// begin starts a Provider over a runtime in memory.
func begin(t *testing.T, rt *runtimetest.Runtime, named ...*v1.Pod) *life {
	p, err := provider.New(provider.Config{Runtime: rt})
	require.NoError(t, err)
	l := &life{Provider: p, t: t, rt: rt, told: map[types.UID][]v1.PodStatus{}}
	said := make(chan *v1.Pod)
	p.NotifyPods(t.Context(), func(pod *v1.Pod) { said <- pod })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	go func() {
		for {
			select {
			case pod := <-said:
				l.told[pod.UID] = append(l.told[pod.UID], pod.Status)
			case <-ctx.Done():
				return
			}
		}
	}()
	l.stop = func() {
		cancel()
		go func() {
			for range said { // nobody listens any more
			}
		}()
		require.NoError(t, <-ended)
		close(said)
	}
	for _, pod := range named {
		require.NoError(t, p.CreatePod(t.Context(), pod))
	}
	return l
}

func (l *life) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// runs returns how many containers of a pod run.
func (l *life) runs(uid types.UID) (n int) {
	pods, err := l.rt.Pods(l.t.Context())
	require.NoError(l.t, err)
	for _, pod := range pods {
		for _, c := range pod.Containers {
			if pod.UID == uid && c.State == runtime.ContainerRunning {
				n++
			}
		}
	}
	return n
}

func (l *life) last(uid types.UID) v1.PodStatus {
	synctest.Wait()
	require.NotEmpty(l.t, l.told[uid], "nothing was told of %s", uid)
	return l.told[uid][len(l.told[uid])-1]
}

func pod(uid string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID(uid)},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)),
			Containers: []v1.Container{{Name: "app", Image: "web:1"}},
		},
	}
}

func deleted(p *v1.Pod) *v1.Pod {
	p = p.DeepCopy()
	p.DeletionTimestamp = new(metav1.Now())
	return p
}

func isNotFound(err error) bool {
	known, ok := err.(interface{ NotFound() bool })
	return ok && known.NotFound()
}

func TestAPodIsDeletedOnlyWhenNothingOfItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("web:1", runtimetest.Behaviour{StopDelay: 10 * time.Second})
		l := begin(t, rt, pod("a"))
		defer l.stop()
		l.after(time.Second)
		assert.True(t, status.IsReady(new(l.last("a"))))

		require.NoError(t, l.DeletePod(t.Context(), deleted(pod("a"))))
		l.after(5 * time.Second)
		assert.Nil(t, l.last("a").ContainerStatuses[0].State.Terminated, "it has its grace period")
		assert.Equal(t, 1, l.runs("a"))
		l.after(20 * time.Second)
		assert.NotNil(t, l.last("a").ContainerStatuses[0].State.Terminated)
		_, err := l.GetPod(t.Context(), "default", "web")
		assert.True(t, isNotFound(err), "%v", err)
		assert.True(t, isNotFound(l.DeletePod(t.Context(), pod("a"))))
	})
}

func TestANewPodUnderAnOldNameIsAnotherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("web:1", runtimetest.Behaviour{StopDelay: 10 * time.Second})
		l := begin(t, rt, pod("a"))
		defer l.stop()
		l.after(time.Second)
		require.NoError(t, l.DeletePod(t.Context(), deleted(pod("a"))))
		require.NoError(t, l.CreatePod(t.Context(), pod("b")))
		l.after(time.Second)
		got, err := l.GetPod(t.Context(), "default", "web")
		require.NoError(t, err)
		assert.EqualValues(t, "b", got.UID)
		l.after(time.Minute)
		assert.True(t, status.IsReady(new(l.last("b"))))
		assert.Zero(t, l.runs("a"))
		assert.Equal(t, 1, l.runs("b"))
	})
}

func TestAProviderThatStartsAnewTakesOverWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		dangling := pod("dangling")
		dangling.Name = "old"
		first := begin(t, rt, pod("a"), dangling)
		first.after(time.Second)
		first.stop()

		second := begin(t, rt)
		defer second.stop()
		second.after(10 * time.Second)
		assert.Equal(t, 1, second.runs("a"), "virtual-kubelet has not spoken yet")
		listed, err := second.GetPods(t.Context())
		require.NoError(t, err)
		require.Len(t, listed, 2)
		require.NoError(t, second.DeletePod(t.Context(), listed[0])) // it is not in the API any more
		require.NoError(t, second.CreatePod(t.Context(), pod("a")))
		second.after(time.Minute)
		assert.True(t, status.IsReady(new(second.last("a"))))
		assert.Zero(t, second.last("a").ContainerStatuses[0].RestartCount)
		assert.Equal(t, 1, second.runs("a"))
		assert.Zero(t, second.runs("dangling"))
	})
}

func TestWhatNobodyNamesIsEndedAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		first := begin(t, rt, pod("a"))
		first.after(time.Second)
		first.stop()
		second := begin(t, rt)
		defer second.stop()
		second.after(50 * time.Second)
		assert.Equal(t, 1, second.runs("a"))
		second.after(2 * time.Minute)
		assert.Zero(t, second.runs("a"))
	})
}

func TestAPodWithoutUIDIsRefused(t *testing.T) {
	p, err := provider.New(provider.Config{Runtime: new(runtimetest.Runtime)})
	require.NoError(t, err)
	assert.ErrorContains(t, p.CreatePod(t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "y"}}), "pod x/y has no UID")
	_, err = provider.New(provider.Config{})
	assert.ErrorContains(t, err, "Config.Runtime is nil")
}
