package cri

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// announcing returns an event of pod u with a sandbox and containers, "c" of them
// running, and those with a "-" after their ID exited.
func announcing(sandbox string, containers ...string) *runtimeapi.ContainerEventResponse {
	e := &runtimeapi.ContainerEventResponse{PodSandboxStatus: &runtimeapi.PodSandboxStatus{
		Id: sandbox, State: runtimeapi.PodSandboxState_SANDBOX_READY, Metadata: &runtimeapi.PodSandboxMetadata{Uid: "u"},
	}}
	for _, id := range containers {
		c := &runtimeapi.ContainerStatus{Id: id, State: runtimeapi.ContainerState_CONTAINER_RUNNING}
		if last := len(id) - 1; id != "" && id[last] == '-' {
			c.Id, c.State = id[:last], runtimeapi.ContainerState_CONTAINER_EXITED
		}
		e.ContainersStatuses = append(e.ContainersStatuses, c)
	}
	return e
}

// started returns announcements of a pod u with sandbox s and a running container c, which this process has created.
func started() *announcements {
	a := newAnnouncements()
	a.created("u", "s", "", nil)
	a.created("u", "c", "s", nil)
	a.reached("c", progressRunning, nil)
	return a
}

func takes(a *announcements) bool {
	_, _, ok := a.take("u")
	return ok
}

// A sandbox that this process does not know was created by a call that timed out, or by
// another program. Later events of the known sandbox do not contain it.
func TestAnUnknownObjectInAnEventNeedsAnInspection(t *testing.T) {
	for name, unknown := range map[string]*runtimeapi.ContainerEventResponse{
		"sandbox": announcing("other"), "container": announcing("s", "c", "other"), "without an ID": announcing("s", "c", ""),
	} {
		t.Run(name, func(t *testing.T) {
			a := started()
			a.received("u", unknown)
			a.received("u", announcing("s", "c"))
			assert.False(t, takes(a))
			changed := a.inspecting("u")
			a.inspected(&runtime.PodStatus{UID: "u", Sandboxes: []runtime.SandboxStatus{{ID: "s", State: runtime.SandboxReady}}, Containers: []runtime.ContainerStatus{{ID: "r://c", SandboxID: "s", State: runtime.ContainerRunning}}}, changed)
			a.received("u", announcing("s", "c"))
			assert.True(t, takes(a), "the inspection has shown that it does not exist")
		})
	}
}

// The event of a creation may arrive before the response of the call.
func TestAnEventBeforeTheResponseOfACreationIsTaken(t *testing.T) {
	a := newAnnouncements()
	a.created("u", "s", "", nil)
	a.received("u", announcing("s", "c"))
	assert.False(t, takes(a))
	a.created("u", "c", "s", nil)
	a.received("u", announcing("s", "c"))
	assert.True(t, takes(a))
}

// A pod that existed all the time may be forgotten while it is inspected. Then its next sandbox is not its only one.
func TestAPodThatWasForgottenDuringAnInspectionIsNotNew(t *testing.T) {
	a := started()
	changed := a.inspecting("u")
	a.retain(func(types.UID) bool { return false })
	a.inspected(&runtime.PodStatus{UID: "u", Sandboxes: []runtime.SandboxStatus{{ID: "s"}}}, changed)
	a.created("u", "s2", "", nil)
	a.received("u", announcing("s2"))
	assert.False(t, takes(a))
}

// It is not known which of the changes during an inspection its result includes.
func TestAChangeDuringAnInspectionNeedsAnother(t *testing.T) {
	a := started()
	changed := a.inspecting("u")
	a.created("u", "c2", "s", nil)
	a.inspected(&runtime.PodStatus{UID: "u", Sandboxes: []runtime.SandboxStatus{{ID: "s", State: runtime.SandboxReady}}, Containers: []runtime.ContainerStatus{{ID: "r://c", SandboxID: "s", State: runtime.ContainerRunning}}}, changed)
	a.received("u", announcing("s", "c")) // from before the creation
	assert.False(t, takes(a))
}

// A runtime that returns an ID twice does not make a pod miss the result of a call.
func TestIDsOfTwoPods(t *testing.T) {
	t.Run("created", func(t *testing.T) {
		a := started()
		a.created("v", "sv", "", nil)
		a.created("u", "sv", "s", nil) // a container with the ID of the other pod's sandbox
		a.received("u", announcing("s", "c"))
		assert.False(t, takes(a))
	})
	t.Run("inspected", func(t *testing.T) {
		a := started()
		a.inspected(&runtime.PodStatus{UID: "v", Containers: []runtime.ContainerStatus{{ID: "r://c", SandboxID: "sv"}}}, 0)
		a.reached("c", progressExited, nil)
		a.received("u", announcing("s", "c"))
		assert.False(t, takes(a))
	})
	t.Run("in a list", func(t *testing.T) {
		a := started()
		c := runtime.ContainerStatus{ID: "r://c", SandboxID: "s", State: runtime.ContainerRunning}
		a.inspected(&runtime.PodStatus{UID: "u", Sandboxes: []runtime.SandboxStatus{{ID: "s", State: runtime.SandboxReady}}, Containers: []runtime.ContainerStatus{c, c}}, a.inspecting("u"))
		a.received("u", announcing("s", "c", "c"))
		assert.False(t, takes(a))
	})
}

// The status of a container is that of its own sandbox.
func TestAContainerInTheEventOfAnotherSandboxIsNotTaken(t *testing.T) {
	a := newAnnouncements()
	a.inspected(&runtime.PodStatus{UID: "u", Sandboxes: []runtime.SandboxStatus{{ID: "s", State: runtime.SandboxReady}}, Containers: []runtime.ContainerStatus{{ID: "r://c", SandboxID: "removed", State: runtime.ContainerRunning}}}, 0)
	a.received("u", announcing("s", "c"))
	assert.False(t, takes(a))
}

// A runtime may send any number of events of any size between two inspections.
func TestEventsAreBounded(t *testing.T) {
	a := started()
	large := announcing("s", "c")
	large.ContainersStatuses[0].Message = string(make([]byte, maxAnnounced))
	a.received("u", large)
	assert.Nil(t, a.pods["u"].event)
	for i := range 1000 {
		a.received("u", announcing("s", "c", fmt.Sprint("unknown-", i)))
		a.received(types.UID(fmt.Sprint("pod-", i)), announcing("x"))
	}
	assert.Len(t, a.pods, 1)
	assert.LessOrEqual(t, len(a.pods["u"].unknown), maxUnknown)
	assert.Len(t, a.ids, 2)
	assert.False(t, takes(a))
}

// Nothing is left of removed pods.
func TestRemovedPodsAreForgotten(t *testing.T) {
	a := started()
	a.removed("c", nil)
	a.removed("s", nil)
	_, _, ok := a.take("u")
	assert.True(t, ok)
	assert.Empty(t, a.pods)
	assert.Empty(t, a.ids)

	a = started()
	a.inspected(&runtime.PodStatus{UID: "u"}, a.inspecting("u"))
	assert.Empty(t, a.pods)
	assert.Empty(t, a.ids)
}

// The owner of a status may change it.
func TestTheStatusOfASandboxIsCopied(t *testing.T) {
	a := newAnnouncements()
	st := &runtime.PodStatus{UID: "u", Sandboxes: []runtime.SandboxStatus{{ID: "s", State: runtime.SandboxReady, IPs: []string{"10.0.0.1"}}}}
	a.inspected(st, 0)
	st.Sandboxes[0].IPs[0], st.Sandboxes[0].ID = "changed", "changed"
	for range 2 {
		a.received("u", announcing("s"))
		_, ready, ok := a.take("u")
		assert.True(t, ok)
		assert.Equal(t, runtime.SandboxStatus{ID: "s", State: runtime.SandboxReady, IPs: []string{"10.0.0.1"}}, *ready)
		ready.IPs[0] = "changed"
	}
	assert.True(t, slices.Contains(a.pods["u"].sandbox.IPs, "10.0.0.1"))
}
