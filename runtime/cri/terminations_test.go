package cri

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestTerminationsOfRemovedPodsAreDropped(t *testing.T) { // lq-32
	e, now := newTerminations(), time.Now()
	for _, uid := range []types.UID{"gone", "here"} {
		e.update(&runtime.PodStatus{UID: uid, ObservedAt: now, Containers: []runtime.ContainerStatus{
			{ID: "x://" + string(uid), State: runtime.ContainerExited, FinishedAt: now.Add(-time.Minute)},
		}})
	}
	// A pod without containers is not inspected again, so only prune drops its entries.
	e.retain(func(uid types.UID) bool { return uid != "gone" })
	_, ok := e.get("gone", "gone")
	assert.False(t, ok)
	_, ok = e.get("here", "here")
	assert.True(t, ok)
}
