package fakenode_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

func TestAnExitCodeThatNoProcessHasIsRefused(t *testing.T) {
	for _, text := range []string{"exit=999", "exit=-1@5s", "exit=256"} {
		_, err := fake.ParseBehavior(text)
		assert.ErrorContains(t, err, "is not a number from 0 to 255", text)
	}
	bad := fake.Behavior{Exit: &fake.Exit{Code: 999}}
	_, err := fakenode.New(new(apitest.Server).RESTConfig(), fakenode.Config{Behaviors: map[string]fake.Behavior{"main": bad}})
	assert.EqualError(t, err, "fakenode: Config.Behaviors: main: fake: behavior \"exit=999\": \"exit=999\": \"999\" is not a number from 0 to 255")
	inWorld(t, fakenode.Config{Behave: func(pod *v1.Pod, _ *v1.Container) (fake.Behavior, bool) { return bad, pod.Name == "bad" }}, func(w *world) {
		w.run("bad", "")
		w.run("web", "")
		w.after(time.Second)
		assert.Equal(t, v1.PodFailed, w.pod("bad").Status.Phase)
		assert.Contains(t, w.pod("bad").Status.Message, "Config.Behave: fake: behavior \"exit=999\"")
		assert.EqualError(t, w.nodes.Exit("default", "web", "", 999), `fakenode: exit: exit code 999 is not from 0 to 255`)
	})
}

func TestANameThatNoNodeHasIsRefused(t *testing.T) {
	for _, name := range []string{"A_b", "-a", "a b"} {
		_, err := fakenode.New(new(apitest.Server).RESTConfig(), fakenode.Config{Nodes: []fakenode.Node{{Name: name}}})
		assert.ErrorContains(t, err, fmt.Sprintf("fakenode: Config.Nodes: invalid name %q: ", name))
	}
}

// A failing is a test of which only the failure matters.
type failing struct {
	*testing.T
	message string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestANodeIsStartedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		start := func(name string) (*fakenode.Nodes, string) {
			var nodes *fakenode.Nodes
			f, done := &failing{T: t}, make(chan struct{})
			go func() {
				defer close(done)
				nodes = fakenode.Start(t.Context(), f, api.RESTConfig(), fakenode.Config{Nodes: []fakenode.Node{{Name: name}}})
			}()
			<-done
			return nodes, f.message
		}
		first, message := start("n1")
		require.Empty(t, message)
		for range 20 {
			time.Sleep(time.Second)
			_, message = start("n1")
			require.Contains(t, message, "fakenode: node n1 runs already: its lease was renewed ")
		}
		_, message = start("n2")
		require.Empty(t, message)
		first.Stop()
		_, message = start("n1")
		require.Empty(t, message)
	})
}

func TestASecondExitNamesTheReason(t *testing.T) {
	inWorld(t, fakenode.Config{}, func(w *world) {
		w.run("web", "")
		w.after(time.Second)
		require.NoError(t, w.nodes.Exit("default", "web", "", 1)) // the first restart is at once
		w.after(time.Second)
		require.NoError(t, w.nodes.Exit("default", "web", "", 1))
		err := w.nodes.Exit("default", "web", "", 1)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "it has not started")
		w.after(time.Minute)
		assert.Contains(t, w.summary("web"), "2 restarts")
	})
}
