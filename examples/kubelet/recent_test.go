package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/eviction"
	pages "github.com/kubeparts/kubeparts/examples/kubelet/page"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func webPod() *v1.Pod {
	pod := new(v1.Pod)
	pod.Namespace, pod.Name, pod.UID = "default", "web", "u"
	pod.Spec.Containers = []v1.Container{{Name: "main"}}
	return pod
}

func TestTheLastEventsAreRemembered(t *testing.T) {
	r := new(recent)
	passed := 0
	record := r.beside(func(runtime.Event) { passed++ })
	for i := range 500 {
		record(runtime.Event{Object: runtime.ContainerRef(webPod(), "main"), Type: v1.EventTypeWarning, Reason: "Unhealthy", Message: fmt.Sprint("no ", i)})
	}
	record(runtime.Event{Object: v1.ObjectReference{Kind: "Node", Name: "n", UID: "n"}, Reason: "Rebooted", Message: strings.Repeat("x", 1<<20)})
	assert.Equal(t, 501, passed, "all are passed on")
	events, _, _ := r.history()
	require.Len(t, events, mostEvents)
	assert.Equal(t, "node n", events[0].Object)
	assert.Empty(t, events[0].UID)
	assert.Len(t, events[0].Message, mostMessage)
	assert.Equal(t, "no 499", events[1].Message)
	assert.Equal(t, "default/web[main]", events[1].Object)
	assert.True(t, events[1].Warning)

	// One that is there already is the newest, and counted.
	r.happened(runtime.Event{Object: runtime.ContainerRef(webPod(), "main"), Type: v1.EventTypeWarning, Reason: "Unhealthy", Message: "no 400"}, noon)
	events, _, _ = r.history()
	require.Len(t, events, mostEvents)
	assert.Equal(t, "no 400", events[0].Message)
	assert.Equal(t, 2, events[0].Count)
	assert.Equal(t, noon, events[0].Last)
}

func TestTheLastPlanOfAPodIsRemembered(t *testing.T) {
	r := new(recent)
	did := cri.SyncInfo{
		Pod: webPod(), Begin: noon, End: noon.Add(time.Second), Plan: plan.Plan{CreateSandbox: true, Start: []plan.Start{{Kind: plan.Regular, Name: "main", Why: "it has not run yet"}}},
		Result: runtime.SyncResult{Actions: []runtime.Action{
			{Kind: runtime.CreatePodSandbox, Target: "web_default"},
			{Kind: runtime.StartContainer, Target: "main", Err: errors.New("no"), Reason: "ErrImagePull", Message: "no such image"},
		}},
	}
	assert.Zero(t, r.plan("u"))
	r.planned(did)
	want := pages.Plan{
		At: noon, Took: time.Second, Steps: []string{"create a sandbox, attempt 0", "start container main: it has not run yet"},
		Results: []pages.Result{{Action: "CreatePodSandbox web_default"}, {Action: "StartContainer main", Err: `failed to "StartContainer" for "main" with ErrImagePull: "no such image"`}},
	}
	assert.Equal(t, want, r.plan("u"))

	// Nothing to do is no news but that.
	r.planned(cri.SyncInfo{Pod: webPod(), Begin: noon.Add(time.Minute), End: noon.Add(time.Minute)})
	want.Looked = noon.Add(time.Minute)
	assert.Equal(t, want, r.plan("u"))
	other := webPod()
	other.UID = "v"
	r.planned(cri.SyncInfo{Pod: other, Begin: noon, End: noon})
	assert.Equal(t, pages.Plan{At: noon}, r.plan("v"))

	r.prune(func(uid types.UID) bool { return uid == "v" })
	assert.Zero(t, r.plan("u"))
	assert.NotZero(t, r.plan("v"))
}

func TestWhatWasAvailableIsRemembered(t *testing.T) {
	r := new(recent)
	thresholds := []eviction.Threshold{
		{Signal: eviction.MemoryAvailable, Value: eviction.Value{Quantity: new(resource.MustParse("100Mi"))}},
		{Signal: eviction.MemoryAvailable, Value: eviction.Value{Percentage: 0.25}, GracePeriod: time.Minute},
	}
	seen := r.measured(thresholds)
	seen(eviction.PassInfo{Err: errors.New("nothing could be measured")})
	_, _, err := r.history()
	require.EqualError(t, err, "nothing could be measured")
	for i := range 500 {
		at := noon.Add(time.Duration(i) * 10 * time.Second)
		p := &eviction.Plan{At: at, Observations: []eviction.Observation{
			{Signal: eviction.PIDAvailable, Available: int64(i), Capacity: 1000},
			{Signal: eviction.MemoryAvailable, Available: 1 << 30, Capacity: 8 << 30},
		}}
		if i == 499 {
			p.Met = []eviction.Met{{Threshold: thresholds[1], Since: at.Add(-time.Minute)}}
		}
		seen(eviction.PassInfo{Result: eviction.Result{Plan: p}})
	}
	_, signals, err := r.history()
	require.NoError(t, err)
	require.Len(t, signals, 2)
	memory, pids := signals[0], signals[1]
	assert.Equal(t, "memory.available", memory.Name)
	assert.Equal(t, []pages.Line{{At: 100 << 20, Text: "100Mi"}, {At: 2 << 30, Text: "25%", Soft: true, Wait: time.Minute}}, memory.Lines)
	assert.Equal(t, "It has been below 25% for 1m0s.", memory.Met)
	assert.Equal(t, pages.Bytes, memory.Unit)
	assert.Equal(t, pages.Count, pids.Unit)
	require.Len(t, pids.Points, mostPoints)
	assert.Equal(t, pages.Point{At: noon.Add(4990 * time.Second), Available: 499}, pids.Points[mostPoints-1])
	assert.EqualValues(t, 500-mostPoints, pids.Points[0].Available)
}
