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
		assert.Equal(t, "Running", w.summary("web"))
		require.NoError(t, w.nodes.SetReady("default", "web", true))
		w.after(time.Second)
		assert.Equal(t, "Running, ready", w.summary("web"))

		require.NoError(t, w.nodes.Exit("default", "web", "", 1))
		w.after(time.Second)
		assert.Equal(t, "Running, ready, 1 restarts", w.summary("web"))
		require.NoError(t, w.nodes.Exit("default", "other", "main", 1))
		w.after(time.Second)
		assert.Equal(t, "Running, ready, 1 restarts", w.summary("other"))

		was := w.pod("other").Status.PodIP
		require.NoError(t, w.nodes.Crash("default", "other"))
		w.after(15 * time.Second)
		assert.Equal(t, "Running, ready, 2 restarts", w.summary("other"))
		assert.NotEqual(t, was, w.pod("other").Status.PodIP)

		require.NoError(t, w.nodes.Evict(w.t.Context(), "default", "web", "The node was low on resource: memory."))
		w.after(time.Second)
		web := w.pod("web")
		assert.Equal(t, "Failed Evicted, ended: 143 Error, 1 restarts", w.summary("web"))
		assert.Equal(t, "The node was low on resource: memory.", web.Status.Message)
		assert.Equal(t, v1.ConditionTrue, condition(web, v1.DisruptionTarget))
		assert.NotEmpty(t, w.nodes.States("fake-1"))
		assert.Empty(t, w.nodes.States("moon"))
	})
}

func TestAContainerOutOfMemoryIsOOMKilled(t *testing.T) {
	inWorld(t, fakenode.Config{}, func(w *world) {
		w.run("web", "", never)
		w.after(time.Second)
		require.NoError(t, w.nodes.OOM("default", "web", "main"))
		w.after(time.Second)
		assert.Equal(t, "Failed, ended: 137 OOMKilled", w.summary("web"))
	})
}

func TestInvalidControlsReturnTheReason(t *testing.T) {
	inWorld(t, fakenode.Config{}, func(w *world) {
		w.run("job", "exit=0@1s", never)
		w.run("crash", "exit=1")
		w.after(5 * time.Second)
		ctx := w.t.Context()
		pod := map[string]func(namespace, name string) error{
			"exit":      func(space, name string) error { return w.nodes.Exit(space, name, "", 1) },
			"oom":       func(space, name string) error { return w.nodes.OOM(space, name, "") },
			"crash":     w.nodes.Crash,
			"set ready": func(space, name string) error { return w.nodes.SetReady(space, name, true) },
			"evict":     func(space, name string) error { return w.nodes.Evict(ctx, space, name, "") },
		}
		for operation, do := range pod {
			assert.EqualError(t, do("default", "job"), "fakenode: "+operation+": pod default/job has terminated: its phase is Succeeded")
			assert.EqualError(t, do("default", "missing"), "fakenode: "+operation+": no pod default/missing is on a fake node: it may not be bound yet; wait until its phase is Running")
		}
		assert.Equal(t, "Succeeded, ended: 0 Completed", w.summary("job"))
		assert.EqualError(t, w.nodes.Exit("default", "crash", "main", 1), "fakenode: exit: container main of pod default/crash is not running: it is waiting: CrashLoopBackOff")
		assert.EqualError(t, w.nodes.OOM("default", "crash", "man"), `fakenode: oom: pod default/crash has no container "man"; want one of [main]`)
		node := map[string]func(node string) error{
			"fail":    w.nodes.Fail,
			"unready": func(node string) error { return w.nodes.Unready(ctx, node, "") },
			"recover": func(node string) error { return w.nodes.Recover(ctx, node) },
			"drain":   func(node string) error { return w.nodes.Drain(ctx, node) },
		}
		for operation, do := range node {
			assert.EqualError(t, do("moon"), "fakenode: "+operation+`: unknown node "moon"; want one of [fake-0]`)
		}
		require.NoError(t, w.nodes.Fail("fake-0"))
		assert.EqualError(t, w.nodes.Fail("fake-0"), "fakenode: fail: node fake-0 has failed already")
		assert.EqualError(t, w.nodes.Unready(ctx, "fake-0", ""), "fakenode: unready: node fake-0 has failed")
		assert.EqualError(t, w.nodes.Exit("default", "crash", "", 1), "fakenode: exit: node fake-0 of pod default/crash has failed")
	})
}
