package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

func putBack(s *v1.PodStatus) { s.Phase, s.ContainerStatuses = v1.PodPending, nil }

// The path of an edit: from the watch, through podsource.Merge and the loop, to
// status.Manager.Reconcile and back. virtual-kubelet had none (#899).
func TestAStatusChangedByAnotherClientIsRepaired(t *testing.T) { // st-71
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, serving("web"))
		require.Equal(t, v1.PodRunning, a.status("web").Phase)
		pass(time.Hour)
		a.calls()
		pass(time.Hour)
		assert.Empty(t, a.calls(), "the watch event of an own write is no edit")

		a.meddle("web", putBack)
		pass(5 * time.Second)
		assert.Equal(t, v1.PodRunning, a.status("web").Phase)
		assert.Len(t, a.status("web").ContainerStatuses, 1)
		assert.Equal(t, []string{"patch pods/status prod/web"}, a.calls(), "once")
		pass(time.Hour)
		assert.Empty(t, a.calls())

		// The retries against a client that overwrites each time are bounded.
		for range 600 {
			a.meddle("web", putBack)
			pass(100 * time.Millisecond)
		}
		assert.LessOrEqual(t, len(a.calls()), 7, "in a minute")
		for range 600 {
			a.meddle("web", putBack)
			pass(time.Second)
		}
		assert.LessOrEqual(t, len(a.calls()), 5, "in ten more")
		pass(20 * time.Minute)
		assert.Equal(t, v1.PodRunning, a.status("web").Phase, "it is repaired eventually")

		// Fields that others own are left alone.
		a.calls()
		a.meddle("web", func(s *v1.PodStatus) {
			s.Conditions = append(s.Conditions, condition("example.com/gate", v1.ConditionTrue))
		})
		pass(time.Hour)
		assert.Empty(t, a.calls())
		assert.Len(t, a.status("web").Conditions, 6)
	})
}

func TestAFailedRepairIsRetriedLater(t *testing.T) { // st-68, st-71
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, serving("web"))
		a.faults.set(about("patch", apitest.Fault{Code: 403}))
		a.meddle("web", putBack)
		pass(time.Hour)
		a.calls()
		pass(30 * time.Minute)
		assert.InDelta(t, 30, len(a.calls()), 2, "once a minute")
		a.faults.set(nil)
		pass(time.Minute + time.Second)
		assert.Equal(t, v1.PodRunning, a.status("web").Phase)
	})
}

func TestTheMirrorOfAStaticPodIsRepairedAndRecreated(t *testing.T) { // st-71, mir-6
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t)
		static := serving("etcd-node-1")
		static.Annotations = newStatic("h1").Annotations
		a.static.Set(static)
		pass(5 * time.Second)
		require.Equal(t, v1.PodRunning, a.status(static.Name).Phase)
		a.calls()
		pass(time.Hour)
		assert.Empty(t, a.calls())

		a.meddle(static.Name, putBack)
		pass(5 * time.Second)
		assert.Equal(t, v1.PodRunning, a.status(static.Name).Phase)
		assert.Equal(t, []string{"patch pods/status prod/etcd-node-1"}, a.calls(), "once")

		for range 10 { // each time it is deleted
			a.api.Remove("pods", "prod", static.Name)
			pass(5 * time.Second)
			assert.Equal(t, v1.PodRunning, a.status(static.Name).Phase, "soon")
			assert.Equal(t, []string{"create pods prod", "patch pods/status prod/etcd-node-1"}, a.calls())
		}
		pass(time.Hour)
		assert.Empty(t, a.calls())
	})
}
