package fakenode_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// ready returns the condition Ready of a node.
func (w *world) ready(node string) v1.NodeCondition {
	w.t.Helper()
	n, err := w.as.CoreV1().Nodes().Get(w.t.Context(), node, metav1.GetOptions{})
	require.NoError(w.t, err)
	for _, c := range n.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c
		}
	}
	return v1.NodeCondition{}
}

func TestAFailedNodeSendsNothingUntilItRecovers(t *testing.T) {
	inWorld(t, fakenode.Config{Nodes: fakenode.Many(2, fakenode.Node{})}, func(w *world) {
		w.run("web", "exit=1@30s", func(p *v1.Pod) { p.Spec.NodeName = "fake-0" })
		w.run("other", "", func(p *v1.Pod) { p.Spec.NodeName = "fake-1" })
		w.after(time.Second)
		was := w.pod("web").Status.PodIP
		require.NoError(t, w.nodes.Fail("fake-0"))
		synctest.Wait()
		w.api.Forget()
		w.after(10 * time.Minute)
		assert.Empty(t, w.api.Calls("update", "leases", "fake-0"))
		assert.Empty(t, w.api.Calls("patch", "nodes/status", "fake-0"))
		assert.NotEmpty(t, w.api.Calls("update", "leases", "fake-1"))
		assert.Equal(t, v1.ConditionTrue, w.ready("fake-0").Status, "nothing marks it otherwise")
		assert.Equal(t, "Running, ready", w.summary("web"))

		require.NoError(t, w.nodes.Recover(w.t.Context(), "fake-0"))
		w.after(15 * time.Second)
		assert.Equal(t, "Running, ready, 1 restarts", w.summary("web"))
		assert.NotEqual(t, was, w.pod("web").Status.PodIP)
		assert.NotEmpty(t, w.api.Calls("update", "leases", "fake-0"))
		require.NoError(t, w.nodes.Fail("fake-0"), "again")
		require.NoError(t, w.nodes.Recover(w.t.Context(), "fake-0"))
		w.delete("web")
		w.after(time.Second)
		assert.Equal(t, "gone", w.summary("web"))
	})
}

func TestAnUnreadyNodeReportsTheReason(t *testing.T) {
	inWorld(t, fakenode.Config{}, func(w *world) {
		ctx := w.t.Context()
		require.NoError(t, w.nodes.Unready(ctx, "fake-0", "no network"))
		c := w.ready("fake-0")
		assert.Equal(t, v1.ConditionFalse, c.Status)
		assert.Equal(t, "KubeletNotReady", c.Reason)
		assert.Equal(t, "no network", c.Message)
		require.NoError(t, w.nodes.Recover(ctx, "fake-0"))
		assert.Equal(t, v1.ConditionTrue, w.ready("fake-0").Status)
		require.NoError(t, w.nodes.Recover(ctx, "fake-0"), "of a healthy node")

		ended, cancel := context.WithCancel(ctx)
		cancel()
		assert.ErrorIs(t, w.nodes.Unready(ended, "fake-0", ""), context.Canceled)
	})
}

func TestADrainEvictsAllPodsExceptThoseOfDaemonSets(t *testing.T) {
	inWorld(t, fakenode.Config{Nodes: fakenode.Many(2, fakenode.Node{})}, func(w *world) {
		on := func(node string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.NodeName = node } }
		w.run("web", "stop=5s", on("fake-0"))
		w.run("other", "", on("fake-1"))
		w.run("agent", "", on("fake-0"), func(p *v1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1", Controller: new(true)}}
		})
		w.after(time.Second)
		began := time.Now()
		second := make(chan error, 1)
		time.AfterFunc(time.Second, func() { second <- w.nodes.Drain(w.t.Context(), "fake-0") })
		require.NoError(t, w.nodes.Drain(w.t.Context(), "fake-0"))
		assert.EqualError(t, <-second, "fakenode: drain: node fake-0 is being drained already")
		assert.GreaterOrEqual(t, time.Since(began), 5*time.Second, "its grace period")
		assert.Equal(t, "gone", w.summary("web"))
		assert.Equal(t, "Running, ready", w.summary("other"))
		assert.Equal(t, "Running, ready", w.summary("agent"))
		w.run("new", "")
		w.after(time.Second)
		assert.Equal(t, "fake-1", w.nodeOf("new"))
		require.NoError(t, w.nodes.Recover(w.t.Context(), "fake-0"))
		n, err := w.as.CoreV1().Nodes().Get(w.t.Context(), "fake-0", metav1.GetOptions{})
		require.NoError(t, err)
		assert.False(t, n.Spec.Unschedulable)
	})
}

func TestADrainThatIsCanceledNamesTheRemainingPods(t *testing.T) {
	inWorld(t, fakenode.Config{}, func(w *world) {
		w.run("web", "ignoreTERM")
		w.after(time.Second)
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		assert.EqualError(t, w.nodes.Drain(ctx, "fake-0"), "fakenode: drain: node fake-0: evict pod default/web: still terminating: context deadline exceeded")
	})
}

func TestNodesThatDoNotRunCannotFail(t *testing.T) {
	n, err := fakenode.New(new(apitest.Server).RESTConfig(), fakenode.Config{})
	require.NoError(t, err)
	assert.EqualError(t, n.Fail("fake-0"), "fakenode: fail: node fake-0 is not running")
}
