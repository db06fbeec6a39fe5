package runtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestStatesReadAsWords(t *testing.T) {
	for state, want := range map[runtime.ContainerState]string{
		runtime.ContainerUnknown: "unknown",
		runtime.ContainerCreated: "created",
		runtime.ContainerRunning: "running",
		runtime.ContainerExited:  "exited",
		99:                       "unknown",
		-1:                       "unknown",
	} {
		assert.Equal(t, want, state.String(), int(state))
	}
	for state, want := range map[runtime.SandboxState]string{
		runtime.SandboxUnknown:  "unknown",
		runtime.SandboxReady:    "ready",
		runtime.SandboxNotReady: "notready",
		99:                      "unknown",
	} {
		assert.Equal(t, want, state.String(), int(state))
	}
	assert.Zero(t, runtime.ContainerUnknown, "the zero value is unknown")
	assert.Zero(t, runtime.SandboxUnknown)
}

func TestRunningIsAContainerThatRunsOrASandboxThatIsReady(t *testing.T) {
	containers := func(states ...runtime.ContainerState) (out []runtime.ContainerStatus) {
		for _, s := range states {
			out = append(out, runtime.ContainerStatus{State: s})
		}
		return out
	}
	sandboxes := func(states ...runtime.SandboxState) (out []runtime.SandboxStatus) {
		for _, s := range states {
			out = append(out, runtime.SandboxStatus{State: s})
		}
		return out
	}
	for name, tc := range map[string]struct {
		status runtime.PodStatus
		want   bool
	}{
		"nothing":                      {runtime.PodStatus{}, false},
		"a container runs":             {runtime.PodStatus{Containers: containers(runtime.ContainerRunning)}, true},
		"the second container runs":    {runtime.PodStatus{Containers: containers(runtime.ContainerExited, runtime.ContainerRunning)}, true},
		"all have exited":              {runtime.PodStatus{Containers: containers(runtime.ContainerExited, runtime.ContainerExited)}, false},
		"created only":                 {runtime.PodStatus{Containers: containers(runtime.ContainerCreated)}, false},
		"unknown only":                 {runtime.PodStatus{Containers: containers(runtime.ContainerUnknown)}, false},
		"a sandbox alone":              {runtime.PodStatus{Sandboxes: sandboxes(runtime.SandboxReady)}, true},
		"an older sandbox is ready":    {runtime.PodStatus{Sandboxes: sandboxes(runtime.SandboxNotReady, runtime.SandboxReady)}, true},
		"a dead sandbox":               {runtime.PodStatus{Sandboxes: sandboxes(runtime.SandboxNotReady, runtime.SandboxUnknown)}, false},
		"dead sandbox, container runs": {runtime.PodStatus{Sandboxes: sandboxes(runtime.SandboxNotReady), Containers: containers(runtime.ContainerRunning)}, true},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, tc.status.Running()) })
	}
}

func TestContainerIsTheNewestOfItsName(t *testing.T) { // rt-10
	s := &runtime.PodStatus{Containers: []runtime.ContainerStatus{
		{ID: "m://3", Name: "web", RestartCount: 1, State: runtime.ContainerExited},
		{ID: "m://2", Name: "job"},
		{ID: "m://1", Name: "web", State: runtime.ContainerRunning},
	}}
	assert.Equal(t, "m://3", s.Container("web").ID, "in any state")
	assert.Equal(t, "m://2", s.Container("job").ID)
	assert.Nil(t, s.Container("db"))
	assert.Nil(t, new(runtime.PodStatus).Container("web"))
	s.Container("job").Image = "changed"
	assert.Equal(t, "changed", s.Containers[1].Image, "the result points into the status")
}

func TestBriefIsWhatAListShows(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }
	for name, tc := range map[string]struct {
		status runtime.PodStatus
		want   *runtime.Pod
	}{
		"nothing is held": {runtime.PodStatus{UID: "u", ObservedAt: at(9)}, nil},
		"a sandbox and two instances": {
			runtime.PodStatus{
				UID: "u", Name: "n", Namespace: "ns", IPs: []string{"10.0.0.1"}, ObservedAt: at(9),
				Sandboxes: []runtime.SandboxStatus{{ID: "s", State: runtime.SandboxReady, Attempt: 2, CreatedAt: at(1), NetworkReported: true, IPs: []string{"10.0.0.1"}}},
				Containers: []runtime.ContainerStatus{
					{ID: "m://b", Name: "web", SandboxID: "s", State: runtime.ContainerRunning, RestartCount: 1, CreatedAt: at(5), StartedAt: at(6), Image: "i", Hash: 7},
					{ID: "m://a", Name: "web", SandboxID: "s", State: runtime.ContainerExited, CreatedAt: at(2), StartedAt: at(3), FinishedAt: at(4), ExitCode: 1},
				},
			},
			&runtime.Pod{
				UID: "u", Name: "n", Namespace: "ns", CreatedAt: at(1),
				Sandboxes: []runtime.Sandbox{{ID: "s", State: runtime.SandboxReady, Attempt: 2, CreatedAt: at(1)}},
				Containers: []runtime.Container{
					{ID: "m://b", Name: "web", SandboxID: "s", State: runtime.ContainerRunning, Attempt: 1, CreatedAt: at(5)},
					{ID: "m://a", Name: "web", SandboxID: "s", State: runtime.ContainerExited, CreatedAt: at(2)},
				},
			},
		},
		"containers without a sandbox (rt-6)": {
			runtime.PodStatus{UID: "u", Name: "n", Containers: []runtime.ContainerStatus{{ID: "m://b", CreatedAt: at(5)}, {ID: "m://a", CreatedAt: at(2)}}},
			&runtime.Pod{UID: "u", Name: "n", CreatedAt: at(2), Containers: []runtime.Container{{ID: "m://b", CreatedAt: at(5)}, {ID: "m://a", CreatedAt: at(2)}}},
		},
		"the oldest thing is an older sandbox": {
			runtime.PodStatus{UID: "u", Sandboxes: []runtime.SandboxStatus{{ID: "t", Attempt: 1, CreatedAt: at(8)}, {ID: "s", CreatedAt: at(3)}}},
			&runtime.Pod{UID: "u", CreatedAt: at(3), Sandboxes: []runtime.Sandbox{{ID: "t", Attempt: 1, CreatedAt: at(8)}, {ID: "s", CreatedAt: at(3)}}},
		},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, tc.status.Pod()) })
	}
}

func TestAPodMayRunIfAContainerIsUnknown(t *testing.T) {
	for state, want := range map[runtime.ContainerState]bool{
		runtime.ContainerUnknown: true, runtime.ContainerRunning: true, runtime.ContainerCreated: false, runtime.ContainerExited: false,
	} {
		pod := runtime.Pod{Containers: []runtime.Container{{State: runtime.ContainerExited}, {State: state}}, Sandboxes: []runtime.Sandbox{{State: runtime.SandboxNotReady}}}
		assert.Equal(t, want, pod.MayRun(), state)
		pod.Sandboxes = append(pod.Sandboxes, runtime.Sandbox{State: runtime.SandboxReady})
		assert.True(t, pod.MayRun(), "a sandbox is ready")
	}
}
