package fakenode_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

func TestATestMakesThingsHappen(t *testing.T) {
	inWorld(t, fakenode.Config{Nodes: fakenode.Many(2, fakenode.Node{})}, func(w *world) {
		w.run("web", "")
		w.run("other", "", func(p *v1.Pod) { p.Spec.NodeName = "fake-1" })
		w.after(time.Second)
		require.NoError(t, w.nodes.SetReady("default", "web", false))
		w.after(time.Second)
		assert.Equal(t, "Running", w.says("web"))
		require.NoError(t, w.nodes.SetReady("default", "web", true))
		w.after(time.Second)
		assert.Equal(t, "Running, ready", w.says("web"))

		require.NoError(t, w.nodes.Exit("default", "web", "", 1))
		w.after(time.Second)
		assert.Equal(t, "Running, ready, 1 restarts", w.says("web"))
		require.NoError(t, w.nodes.Exit("default", "other", "main", 1))
		w.after(time.Second)
		assert.Equal(t, "Running, ready, 1 restarts", w.says("other"))

		was := w.pod("other").Status.PodIP
		require.NoError(t, w.nodes.Crash("default", "other"))
		w.after(15 * time.Second)
		assert.Equal(t, "Running, ready, 2 restarts", w.says("other"))
		assert.NotEqual(t, was, w.pod("other").Status.PodIP)

		require.NoError(t, w.nodes.Evict(w.t.Context(), "default", "web", "The node was low on resource: memory."))
		w.after(time.Second)
		web := w.pod("web")
		assert.Equal(t, "Failed Evicted, ended: 143 Error, 1 restarts", w.says("web"))
		assert.Equal(t, "The node was low on resource: memory.", web.Status.Message)
		assert.Equal(t, v1.ConditionTrue, condition(web, v1.DisruptionTarget))
		assert.NotEmpty(t, w.nodes.States("fake-1"))
		assert.Empty(t, w.nodes.States("moon"))
	})
}

func TestWhatCannotHappenSaysWhy(t *testing.T) {
	inWorld(t, fakenode.Config{}, func(w *world) {
		w.run("job", "exit=0@1s", never)
		w.after(5 * time.Second)
		assert.ErrorContains(t, w.nodes.Exit("default", "job", "", 1), "no container main runs")
		assert.EqualError(t, w.nodes.Evict(w.t.Context(), "default", "job", "late"), "fakenode: evict default/job: pod not evicted: already stopped")
		assert.Equal(t, "Succeeded, ended: 0 Completed", w.says("job"))
		for _, err := range []error{
			w.nodes.Exit("default", "missing", "", 1), w.nodes.Crash("default", "missing"),
			w.nodes.SetReady("default", "missing", true), w.nodes.Evict(w.t.Context(), "default", "missing", ""),
		} {
			assert.ErrorContains(t, err, "no pod default/missing is on a fake node")
		}
	})
}
