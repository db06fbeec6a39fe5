package pleg_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

// answers is a runtime with an answer for each list and each inspection.
type answers struct {
	lists       []func() []*runtime.Pod
	inspections []func() *runtime.PodStatus
}

func next[T any](calls *[]func() T) T {
	call := (*calls)[0]
	if len(*calls) > 1 {
		*calls = (*calls)[1:]
	}
	return call()
}

func (a *answers) Pods(context.Context) ([]*runtime.Pod, error) { return next(&a.lists), nil }

func (a *answers) PodStatus(context.Context, types.UID) (*runtime.PodStatus, error) {
	return next(&a.inspections), nil
}

// pleg-4: the inspection begins after the list and ends after it, but the runtime has
// answered it with the state before the removal that the list shows.
func TestAnInspectionThatOverlapsAListDoesNotAddARemovedPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := func(s runtime.ContainerState) *runtime.Pod {
			return &runtime.Pod{UID: "u", Name: "web", Namespace: "prod", Containers: []runtime.Container{{ID: "c", Name: "main", State: s}}}
		}
		status := func(s runtime.ContainerState) *runtime.PodStatus {
			return &runtime.PodStatus{UID: "u", Name: "web", Namespace: "prod", Containers: []runtime.ContainerStatus{{ID: "c", Name: "main", State: s}}}
		}
		rt := &answers{
			lists: []func() []*runtime.Pod{
				func() []*runtime.Pod { return []*runtime.Pod{pod(runtime.ContainerRunning)} },
				func() []*runtime.Pod { time.Sleep(time.Second); return nil },
				func() []*runtime.Pod { return nil },
			},
			inspections: []func() *runtime.PodStatus{
				func() *runtime.PodStatus { return status(runtime.ContainerRunning) },
				func() *runtime.PodStatus { time.Sleep(time.Second); return status(runtime.ContainerExited) },
				func() *runtime.PodStatus { return &runtime.PodStatus{UID: "u"} },
			},
		}
		var events []pleg.EventType
		g, err := pleg.New(pleg.Config{Runtime: rt, Period: time.Hour, Handle: func(e pleg.Event) { events = append(events, e.Type) }})
		require.NoError(t, err)
		defer run(t, g)()
		synctest.Wait()
		go func() { _, _ = g.PodsNewerThan(t.Context(), time.Now()) }()
		time.Sleep(500 * time.Millisecond)
		g.RequestRelist("u")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []pleg.EventType{pleg.ContainerStarted, pleg.ContainerDied, pleg.ContainerRemoved}, events)
		got, err := g.Get("u")
		require.NoError(t, err)
		assert.Nil(t, got.Pod())
	})
}
