package client_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/runtime"
)

// A switchboard is a Fault that can be changed during a test.
type switchboard struct {
	mu  sync.Mutex
	now func(apitest.Call) apitest.Fault
}

func (s *switchboard) fault(c apitest.Call) apitest.Fault {
	s.mu.Lock()
	now := s.now
	s.mu.Unlock()
	if now == nil {
		return apitest.Fault{}
	}
	return now(c)
}

func (s *switchboard) set(now func(apitest.Call) apitest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

// about lets only calls with that verb fail.
func about(verb string, f apitest.Fault) func(apitest.Call) apitest.Fault {
	return func(c apitest.Call) apitest.Fault {
		if c.Verb == verb {
			return f
		}
		return apitest.Fault{}
	}
}

// A desk is a Statuses with all it needs.
type desk struct {
	*client.Statuses
	api    *apitest.Server
	faults *switchboard
	pods   *client.Pods

	mu     sync.Mutex
	events []string
}

func newDesk(t *testing.T, objects ...*v1.Pod) *desk {
	t.Helper()
	d := &desk{api: new(apitest.Server), faults: new(switchboard)}
	d.api.Fault = d.faults.fault
	for _, pod := range objects {
		d.api.Put(pod)
	}
	d.pods = newPods(t, d.api)
	following(t, d.pods)
	var err error
	d.Statuses, err = client.NewStatuses(client.StatusesConfig{
		Client: connect(t, d.api).API, Pods: d.pods,
		Record: func(e runtime.Event) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.events = append(d.events, e.Type+" "+e.Reason+" "+e.Message)
		},
	})
	require.NoError(t, err)
	running(t, d.Run)
	d.api.Forget()
	return d
}

func (d *desk) recorded() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.events
}

// callsOf formats calls, watches excluded.
func callsOf(calls []apitest.Call) []string {
	var out []string
	for _, c := range calls {
		if c.Verb != "watch" && c.Verb != "list" {
			out = append(out, c.String())
		}
	}
	return out
}

func condition(t v1.PodConditionType, s v1.ConditionStatus) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: s, LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0))}
}

func runningStatus() v1.PodStatus {
	return v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{condition(v1.PodReady, v1.ConditionTrue)},
		ContainerStatuses: []v1.ContainerStatus{{Name: "main", Ready: true, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}}
}

func failedStatus() v1.PodStatus {
	return v1.PodStatus{Phase: v1.PodFailed, Conditions: []v1.PodCondition{condition(v1.PodReady, v1.ConditionFalse)},
		ContainerStatuses: []v1.ContainerStatus{{Name: "main", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1}}}}}
}
