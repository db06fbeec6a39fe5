package fakenode_test

import (
	"fmt"
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

func TestPodsAreBoundToNodesThatTheyFit(t *testing.T) {
	taint := v1.Taint{Key: "only", Value: "gpu", Effect: v1.TaintEffectNoSchedule}
	nodes := []fakenode.Node{
		{Name: "gpu", Taints: []v1.Taint{taint}},
		{Name: "plain", Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}},
		{Name: "disk", Labels: map[string]string{"disk": "ssd"}},
	}
	inWorld(t, fakenode.Config{Nodes: nodes}, func(w *world) {
		w.run("big", "", asks("7"))
		w.run("small", "", asks("1500m"))
		w.run("choosy", "", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} })
		w.run("tolerant", "", func(p *v1.Pod) {
			p.Spec.Tolerations = []v1.Toleration{{Key: "only", Operator: v1.TolerationOpExists}}
		})
		w.run("named", "", func(p *v1.Pod) { p.Spec.NodeName = "disk" })
		w.run("gated", "", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "not.yet/there"}} })
		w.run("foreign", "", func(p *v1.Pod) { p.Spec.SchedulerName = "mine" })
		w.after(time.Second)
		want := map[string]string{"big": "disk", "small": "plain", "choosy": "disk", "tolerant": "gpu", "named": "disk", "gated": "", "foreign": ""}
		for name, node := range want {
			assert.Equal(t, node, w.nodeOf(name), name)
			if node != "" {
				assert.Equal(t, "Running, ready", w.summary(name), name)
			}
		}
		addresses := map[string]bool{}
		for _, name := range []string{"small", "big", "choosy", "tolerant", "named"} {
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
		updates := len(w.api.Calls("update", "pods/status"))
		w.after(time.Minute)
		assert.Len(t, w.api.Calls("update", "pods/status"), updates, "it is reported once")
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
		w.after(0)
		w.run("web", "")
		w.after(time.Second)
		assert.Equal(t, "fake-1", w.nodeOf("web"))

		require.NoError(t, w.nodes.Unready(w.t.Context(), "fake-1", "no network"))
		w.after(3 * time.Second)
		w.run("late", "")
		w.after(time.Second)
		assert.Empty(t, w.nodeOf("late"))
		assert.Contains(t, w.pod("late").Status.Conditions[0].Message, "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.")
		assert.Equal(t, "Running, ready", w.summary("web"), "its pods live on")
		require.NoError(t, w.nodes.Recover(w.t.Context(), "fake-1"))
		w.after(5 * time.Second)
		assert.Equal(t, "fake-1", w.nodeOf("late"))
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

func TestPodsAreBoundByPriority(t *testing.T) {
	inWorld(t, fakenode.Config{}, func(w *world) {
		w.run("first", "", asks("8"))
		w.after(time.Second)
		w.run("low", "", asks("8"))
		w.run("high", "", asks("8"), func(p *v1.Pod) { p.Spec.Priority = new(int32(10)) })
		w.after(5 * time.Second)
		w.delete("first")
		w.after(5 * time.Second)
		assert.Equal(t, "Running, ready", w.summary("high"))
		assert.Equal(t, "Pending", w.summary("low"))
	})
}

func TestPodsAreSpreadAndRepelled(t *testing.T) {
	inWorld(t, fakenode.Config{Nodes: fakenode.Many(3, fakenode.Node{})}, func(w *world) {
		_, err := w.as.CoreV1().Namespaces().Create(w.t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "x"}}}, metav1.CreateOptions{})
		require.NoError(t, err)
		app := metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
		apart := func(p *v1.Pod) {
			p.Labels = app.MatchLabels
			p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
				TopologyKey: v1.LabelHostname, LabelSelector: &app, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}},
			}}}}
		}
		on := map[string]bool{}
		for _, name := range []string{"db-0", "db-1", "db-2", "db-3"} {
			w.run(name, "", apart)
			w.after(time.Second)
			on[w.nodeOf(name)] = true
		}
		assert.Equal(t, map[string]bool{"fake-0": true, "fake-1": true, "fake-2": true, "": true}, on)
		const message = "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."
		assert.Equal(t, message, w.pod("db-3").Status.Conditions[0].Message)
		var failed []string
		for _, o := range w.api.List("events") {
			if e := o.(*v1.Event); e.Reason == "FailedScheduling" {
				failed = append(failed, e.InvolvedObject.Name+": "+e.Message)
			}
		}
		assert.Equal(t, []string{"db-3: " + message}, failed)
		w.delete("db-1")
		w.after(5 * time.Second)
		assert.Equal(t, "Running, ready", w.summary("db-3"))
	})
}

// Placement does not read the API server; nodes and pods are watched.
func TestABindingIsOneRequest(t *testing.T) {
	inWorld(t, fakenode.Config{Nodes: fakenode.Many(3, fakenode.Node{})}, func(w *world) {
		w.api.Forget()
		for i := range 20 {
			w.run(fmt.Sprint("web-", i), "")
		}
		w.after(time.Second)
		assert.Len(t, w.api.Calls("create", "pods/binding"), 20)
		assert.Empty(t, w.api.Calls("list"))
	})
}
