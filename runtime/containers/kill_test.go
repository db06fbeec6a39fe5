package containers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// whole returns a pod with an init container, a sidecar, a container that fails once and one that
// succeeds.
func whole() *v1.Pod {
	named := func(name string, c v1.Container) v1.Container {
		c.Name = name
		return c
	}
	always := v1.ContainerRestartPolicyAlways
	sidecar := named("sidecar", image("long"))
	sidecar.RestartPolicy = &always
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "whole", Namespace: "default", UID: "uid-1"},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyOnFailure, TerminationGracePeriodSeconds: new(int64(5)),
			InitContainers: []v1.Container{named("init", exits(0)), sidecar},
			Containers:     []v1.Container{named("fails", exits(3)), named("main", exits(0))},
		},
	}
}

// An agent is one process: a killed one makes no further calls.
type agent struct {
	rt  *containers.Runtime
	ctx context.Context
}

// step makes one step of a pod: it syncs it, kills it when it has run for long enough, and reports
// whether it has ended.
func (a agent) step(pod *v1.Pod) (ended bool, err error) {
	status, err := a.rt.PodStatus(a.ctx, pod.UID)
	if err != nil {
		return false, err
	}
	main, fails := status.Container("main"), status.Container("fails")
	if main != nil && main.State == runtime.ContainerExited && fails != nil && fails.RestartCount >= 1 && fails.State == runtime.ContainerExited {
		return true, a.rt.KillPod(a.ctx, runtime.KillRequest{UID: pod.UID, Pod: pod})
	}
	_, _ = a.rt.SyncPod(a.ctx, runtime.SyncRequest{Pod: pod, Status: status}) // a crash loop is an error
	return false, a.ctx.Err()
}

// TestAKillAtEachCall kills the agent at each of its calls of the backend, before the call takes
// effect and after it, and continues with another agent that has nothing but the directory: nothing
// runs twice, and the result is the same as without the kill.
func TestAKillAtEachCall(t *testing.T) {
	modes := map[string]func(*fake.Behavior){
		"prompt": nil,
		"slow":   func(b *fake.Behavior) { b.StartDelay = 3 * time.Second },
		"queued": func(b *fake.Behavior) { b.QueueDelay = 7 * time.Second },
	}
	for name, mode := range modes {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ",after=", after), func(t *testing.T) {
				for at := 1; ; at += every() {
					calls := 0
					synctest.Test(t, func(t *testing.T) { calls = killed(t, mode, at, after, false) })
					if t.Failed() {
						t.Fatalf("killed at call %d of %d", at, calls)
					}
					if calls < at {
						t.Logf("killed at each of %d calls", calls)
						return
					}
				}
			})
		}
	}
}

// The directory of the agent is lost as well, as that of an agent in a pod.
func TestAKillAtEachCallWithItsDirectory(t *testing.T) {
	for at := 1; ; at += every() {
		calls := 0
		synctest.Test(t, func(t *testing.T) { calls = killed(t, nil, at, true, true) })
		if t.Failed() {
			t.Fatalf("killed at call %d of %d", at, calls)
		}
		if calls < at {
			return
		}
	}
}

// every is the distance of the calls at which the agent is killed.
func every() int {
	if testing.Short() {
		return 7
	}
	return 1
}

var errKilled = errors.New("killed")

// killed runs the pod with an agent that is killed at a call, and returns the number of calls.
func killed(t *testing.T, mode func(*fake.Behavior), at int, after, loseDir bool) int {
	below := newFake(mode)
	var stop context.CancelFunc
	below.Fault = func(c fake.Call) fake.Fault {
		if c.Number != at {
			return fake.Fault{}
		}
		stop()
		return fake.Fault{Err: errKilled, Lost: after}
	}
	cfg := configOf(t, below)
	var rt *containers.Runtime
	start := func() agent {
		ctx, cancel := context.WithCancel(t.Context())
		stop = cancel
		t.Cleanup(cancel)
		if loseDir {
			cfg.Engine.Dirs = configOf(t, below).Engine.Dirs
		}
		if rt != nil {
			require.NoError(t, rt.Close())
		}
		rt = open(t, cfg)
		return agent{rt, ctx}
	}
	pod, a := whole(), start()
	ended := false
	for n := 0; !ended && n < 2000; n++ {
		var err error
		ended, err = a.step(pod)
		if a.ctx.Err() != nil {
			ended, a = false, start()
		} else if !errors.Is(err, errKilled) {
			require.NoError(t, err)
		}
		time.Sleep(500 * time.Millisecond)
	}
	assert.True(t, ended, "the pod has not ended")
	time.Sleep(time.Minute) // whatever is queued
	assert.NoError(t, below.Violations())
	calls := below.Calls()
	below.Fault = nil
	status, err := a.rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	runs := map[string]int{}
	for _, c := range status.Containers {
		if !c.StartedAt.IsZero() {
			runs[c.Name]++
		}
		assert.Equal(t, runtime.ContainerExited, c.State, c.Name)
	}
	assert.Equal(t, 1, runs["init"], "init containers")
	assert.Equal(t, 1, runs["sidecar"], "sidecars")
	assert.Equal(t, 1, runs["main"], "main containers")
	assert.Equal(t, 2, runs["fails"], "failing containers")
	return calls
}
