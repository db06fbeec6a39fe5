package cri_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// greeting returns a container with a postStart hook.
func greeting(name string) v1.Container {
	c := container(name)
	c.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hello"}}}}
	return c
}

// unhooked starts the containers of a pod and cancels their postStart hooks.
func unhooked(t *testing.T, f *fakeCRI, rt *cri.Runtime, pod *v1.Pod) {
	t.Helper()
	for range pod.Spec.Containers {
		ctx, cancel := context.WithCancel(t.Context())
		f.exec = func(context.Context, string, []string) error { cancel(); return context.Canceled }
		_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
		require.ErrorIs(t, err, context.Canceled)
		cancel()
	}
	f.exec = nil
	f.did()
}

func TestAContainerThatIsBeingStoppedGetsNoHook(t *testing.T) { // lq-14, rt-30
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		f.has("img:2")
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(greeting("web"))
		unhooked(t, f, rt, pod)
		require.Equal(t, []string{"web"}, f.running())

		pod.Spec.Containers[0].Image = "img:2"
		syncs(t, rt, pod)
		assert.Equal(t, []string{"StopContainer web", "ImageStatus img:2", "CreateContainer web", "StartContainer web", "ExecSync web"}, f.did(), "only the hook of the new instance runs")
	})
}

func TestUnfinishedHooksRunInTheOrderOfTheSpec(t *testing.T) { // lq-14, rt-70
	synctest.Test(t, func(t *testing.T) {
		for range 8 {
			f := newFake()
			f.has("img:1")
			rt, _ := f.engine(t, cri.Config{})
			pod := podOf(greeting("d"), greeting("b"), greeting("c"), greeting("a"))
			f.exec = func(context.Context, string, []string) error { return errors.New("no") }
			f.before = func(op, _ string) error {
				if op == "StopContainer" {
					return errors.New("busy")
				}
				return nil
			}
			_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.Error(t, err)
			require.Len(t, f.running(), 4, "each hook failed, and no container could be stopped")
			f.exec, f.before = nil, nil
			f.did()

			syncs(t, rt, pod)
			assert.Equal(t, []string{"ExecSync d", "ExecSync b", "ExecSync c", "ExecSync a"}, f.did())
			syncs(t, rt, pod)
			assert.Empty(t, f.did(), "successful hooks do not run again")
		}
	})
}

func TestAContainerWhoseHookFailedIsStoppedInTheEnd(t *testing.T) { // rt-103
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(greeting("web"))
		f.exec = func(context.Context, string, []string) error { return errors.New("no") }
		f.before = failing(1, "StopContainer", errors.New("busy"))
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.Error(t, err)
		require.Equal(t, []string{"web"}, f.running())

		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.ErrorContains(t, err, "PostStartHookError")
		assert.Empty(t, f.running())
	})
}

func TestTheHookOfAnInstanceWhoseCreationWasNotObservedRuns(t *testing.T) { // lq-14
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		dir := t.TempDir()
		agent := func() *cri.Runtime {
			rt, err := cri.New(cri.Config{Name: "fake", Runtime: f, Images: f, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}})
			require.NoError(t, err)
			return rt
		}
		pod := podOf(greeting("web"))
		ctx, cancel := context.WithCancel(t.Context())
		f.after = failing(1, "CreateContainer", errLost)
		f.observe = func(c fakecri.Change) {
			if c.To == fakecri.Created {
				cancel()
			}
		}
		_, err := agent().SyncPod(ctx, runtime.SyncRequest{Pod: pod})
		require.Error(t, err)
		f.after, f.observe = nil, nil

		ctx, cancel = context.WithCancel(t.Context())
		f.exec = func(context.Context, string, []string) error { cancel(); return context.Canceled }
		_, err = agent().SyncPod(ctx, runtime.SyncRequest{Pod: pod})
		require.Error(t, err)
		require.Equal(t, []string{"web"}, f.running())
		f.exec = nil
		f.did()

		syncs(t, agent(), pod)
		assert.Equal(t, []string{"ExecSync web"}, f.did())
	})
}
