package sim_test

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

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/status"
)

// startNode runs a node until the end of the test.
func startNode(t *testing.T, cfg sim.NodeConfig) *sim.Node {
	t.Helper()
	n, err := sim.NewNode(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ran)
	})
	return n
}

func pod(name, image string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: image}}},
	}
}

func TestPodsLiveOnANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("slow", fake.Behavior{ReadyAfter: 5 * time.Second})
		n := startNode(t, sim.NodeConfig{Runtime: rt})
		slow := pod("slow", "slow")
		slow.Spec.Containers[0].ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{}}}
		require.NoError(t, n.Set(slow, pod("web", "web")))
		began := time.Now()
		_, err := n.Wait(t.Context(), "web", func(s v1.PodStatus) bool { return status.IsReady(&s) })
		require.NoError(t, err)
		_, err = n.Wait(t.Context(), "slow", func(s v1.PodStatus) bool { return s.Phase == v1.PodRunning && !status.IsReady(&s) })
		require.NoError(t, err, "it runs before it is ready")
		_, err = n.Wait(t.Context(), "slow", func(s v1.PodStatus) bool { return status.IsReady(&s) })
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(began), 5*time.Second)
		assert.Less(t, time.Since(began), 7*time.Second)

		require.Len(t, n.Pods(), 2)
		assert.Equal(t, v1.PodRunning, n.Pods()[0].Status.Phase, "the API has the reported status")
		assert.Len(t, n.States(), 2)
		assert.NoError(t, n.Healthy())

		n.Delete("slow", nil)
		time.Sleep(time.Second)
		assert.Len(t, n.Pods(), 1, "what was deleted, and has ended, is wanted no more")
		last, ok := n.Status("slow")
		assert.True(t, ok)
		assert.Equal(t, v1.PodFailed, last.Phase)

		require.NoError(t, n.Set())
		time.Sleep(2 * time.Minute)
		left, err := rt.Pods(t.Context())
		require.NoError(t, err)
		assert.Empty(t, left)
	})
}

func TestAnEvictedPodHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported := new(status.MemorySink)
		n := startNode(t, sim.NodeConfig{Sink: reported})
		require.NoError(t, n.Add(pod("web", "web")))
		time.Sleep(time.Second)
		<-n.Evict("web", podworker.KillOptions{Termination: runtime.Termination{Failed: true, Reason: "Evicted"}})
		time.Sleep(time.Second)
		s, _ := n.Status("web")
		assert.Equal(t, "Failed Evicted", string(s.Phase)+" "+s.Reason)
		again, _ := reported.Status("web")
		assert.Equal(t, s, again, "the sink of the Config receives it as well")
		assert.Len(t, n.Pods(), 1, "the object stays")
	})
}

func TestAChangedPodIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, sim.NodeConfig{})
		require.NoError(t, n.Add(pod("web", "one")))
		time.Sleep(time.Second)
		require.NoError(t, n.Add(pod("web", "two")))
		time.Sleep(time.Second)
		s, _ := n.Status("web")
		require.Len(t, s.ContainerStatuses, 1)
		assert.Equal(t, "two", s.ContainerStatuses[0].Image)
		assert.EqualValues(t, 1, s.ContainerStatuses[0].RestartCount)
	})
}

func TestAPodWhoseNameIsTakenIsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, sim.NodeConfig{})
		require.NoError(t, n.Add(pod("web", "one")))
		second := pod("web", "two")
		second.UID = "web-2"
		err := n.Add(second, pod("db", "one"))
		require.EqualError(t, err, "sim: add pod default/web with UID web-2: the name belongs to a pod with another UID")
		var names []types.UID
		for _, p := range n.Pods() {
			names = append(names, p.UID)
		}
		assert.Equal(t, []types.UID{"db", "web"}, names, "the others are added")

		require.NoError(t, n.Set(second), "the first is removed before")
		assert.Equal(t, types.UID("web-2"), n.Pods()[0].UID)
	})
}
