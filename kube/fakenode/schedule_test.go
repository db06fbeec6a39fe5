package fakenode_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

func (w *world) nodeOf(name string) string {
	w.t.Helper()
	pod := w.pod(name)
	require.NotNil(w.t, pod, name)
	return pod.Spec.NodeName
}

func asks(cpu string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
	}
}

func TestPodsAreBoundToTheFirstNodeThatTakesThem(t *testing.T) {
	taint := v1.Taint{Key: "only", Value: "gpu", Effect: v1.TaintEffectNoSchedule}
	nodes := []fakenode.Node{
		{Name: "gpu", Taints: []v1.Taint{taint}},
		{Name: "plain", Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}},
		{Name: "disk", Labels: map[string]string{"disk": "ssd"}},
	}
	inWorld(t, fakenode.Config{Nodes: nodes}, func(w *world) {
		w.run("plain", "", asks("1500m"))
		w.run("big", "", asks("1"), func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Second)) })
		w.run("choosy", "", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} })
		w.run("tolerant", "", func(p *v1.Pod) {
			p.Spec.Tolerations = []v1.Toleration{{Key: "only", Operator: v1.TolerationOpExists}}
		})
		w.run("named", "", func(p *v1.Pod) { p.Spec.NodeName = "disk" })
		w.run("gated", "", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "not.yet/there"}} })
		w.after(time.Second)
		for name, node := range map[string]string{"plain": "plain", "big": "disk", "choosy": "disk", "tolerant": "gpu", "named": "disk", "gated": ""} {
			assert.Equal(t, node, w.nodeOf(name), name)
			if node != "" {
				assert.Equal(t, "Running, ready", w.summary(name), name)
			}
		}
		addresses := map[string]bool{}
		for _, name := range []string{"plain", "big", "choosy", "tolerant", "named"} {
			addresses[w.pod(name).Status.PodIP] = true
		}
		assert.Len(t, addresses, 5, "pods of different nodes share no address")
	})
}

func TestAnUnschedulablePodReportsTheReasonAndWaits(t *testing.T) {
	inWorld(t, fakenode.Config{}, func(w *world) {
		w.run("huge", "", asks("9"))
		w.run("first", "", asks("8"))
		w.after(time.Second)
		huge := w.pod("huge")
		assert.Equal(t, "Pending", w.summary("huge"))
		require.NotEmpty(t, huge.Status.Conditions)
		c := huge.Status.Conditions[0]
		assert.Equal(t, v1.PodScheduled, c.Type)
		assert.Equal(t, v1.ConditionFalse, c.Status)
		assert.Equal(t, v1.PodReasonUnschedulable, c.Reason)
		assert.Equal(t, "0/1 nodes are available: 1 Insufficient cpu.", c.Message)

		w.run("second", "", asks("8"))
		w.after(10 * time.Second)
		assert.Equal(t, "Pending", w.summary("second"))
		said := len(w.api.Calls("update", "pods/status"))
		w.after(time.Minute)
		assert.Len(t, w.api.Calls("update", "pods/status"), said, "it is reported once")
		w.delete("first")
		w.after(5 * time.Second)
		assert.Equal(t, "Running, ready", w.summary("second"), "there is room now")
		w.delete("huge")
		w.after(time.Second)
		assert.Equal(t, "gone", w.summary("huge"))
	})
}

func TestANodeThatIsCordonedOrNotReadyTakesNoPods(t *testing.T) {
	inWorld(t, fakenode.Config{Nodes: fakenode.Many(2, fakenode.Node{})}, func(w *world) {
		_, err := w.as.CoreV1().Nodes().Patch(w.t.Context(), "fake-0", types.StrategicMergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		w.run("web", "")
		w.after(time.Second)
		assert.Equal(t, "fake-1", w.nodeOf("web"))

		require.NoError(t, w.nodes.SetHealth("fake-1", assert.AnError))
		w.after(3 * time.Second)
		w.run("late", "")
		w.after(time.Second)
		assert.Empty(t, w.nodeOf("late"))
		assert.Contains(t, w.pod("late").Status.Conditions[0].Message, "0/2 nodes are available: 1 node(s) were not ready, 1 node(s) were unschedulable.")
		assert.Equal(t, "Running, ready", w.summary("web"), "its pods live on")
		require.NoError(t, w.nodes.SetHealth("fake-1", nil))
		w.after(5 * time.Second)
		assert.Equal(t, "fake-1", w.nodeOf("late"))
		assert.ErrorContains(t, w.nodes.SetHealth("moon", nil), "want one of [fake-0 fake-1]")
	})
}

func TestPodsOfAnotherSchedulerAreNotBound(t *testing.T) {
	inWorld(t, fakenode.Config{NoScheduler: true}, func(w *world) {
		w.run("web", "")
		w.after(time.Minute)
		assert.Empty(t, w.nodeOf("web"))
		require.NoError(t, w.as.CoreV1().Pods("default").Bind(w.t.Context(), &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Target: v1.ObjectReference{Kind: "Node", Name: "fake-0"},
		}, metav1.CreateOptions{}))
		w.after(time.Second)
		assert.Equal(t, "Running, ready", w.summary("web"))
	})
}

// The API server creates nodes with this taint, and in an envtest no controller
// removes it.
func TestATaintOfANewNodeGoesWhenItIsReady(t *testing.T) {
	own := v1.Taint{Key: "only", Effect: v1.TaintEffectPreferNoSchedule}
	nodes := []fakenode.Node{{Taints: []v1.Taint{{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule}, own}}}
	inWorld(t, fakenode.Config{Nodes: nodes}, func(w *world) {
		w.run("web", "")
		w.after(time.Second)
		assert.Equal(t, "Running, ready", w.summary("web"))
		n, err := w.as.CoreV1().Nodes().Get(w.t.Context(), "fake-0", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, []v1.Taint{own}, n.Spec.Taints)
	})
}
