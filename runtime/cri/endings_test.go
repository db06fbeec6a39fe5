package cri

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestEndingsOfPodsThatAreGoneAreForgotten(t *testing.T) { // lq-32
	e, now := newEndings(), time.Now()
	for _, uid := range []types.UID{"gone", "here"} {
		e.seen(&runtime.PodStatus{UID: uid, ObservedAt: now, Containers: []runtime.ContainerStatus{
			{ID: "x://" + string(uid), State: runtime.ContainerExited, FinishedAt: now.Add(-time.Minute)},
		}})
	}
	// Nobody looks at a pod again of which nothing is left.
	e.forget(func(uid types.UID) bool { return uid == "gone" })
	_, ok := e.known("gone", "gone")
	assert.False(t, ok)
	_, ok = e.known("here", "here")
	assert.True(t, ok)
}
