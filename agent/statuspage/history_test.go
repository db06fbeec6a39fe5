package statuspage

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

	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
	"github.com/kubeparts/kubeparts/eviction"
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

func TestTheLastEventsAreKept(t *testing.T) {
	r := new(History)
	record := r.Record
	for i := range 500 {
		record(runtime.Event{Object: runtime.ContainerRef(webPod(), "main"), Type: v1.EventTypeWarning, Reason: "Unhealthy", Message: fmt.Sprint("no ", i)})
	}
	record(runtime.Event{Object: v1.ObjectReference{Kind: "Node", Name: "n", UID: "n"}, Reason: "Rebooted", Message: strings.Repeat("x", 1<<20)})
	events := r.lastEvents()
	require.Len(t, events, maxEvents)
	assert.Equal(t, "node n", events[0].Object)
	assert.Empty(t, events[0].UID)
	assert.Len(t, events[0].Message, maxMessage)
	assert.Equal(t, "no 499", events[1].Message)
	assert.Equal(t, "default/web[main]", events[1].Object)
	assert.True(t, events[1].Warning)

	// A repeated event becomes the newest, and is counted.
	began := time.Now()
	record(runtime.Event{Object: runtime.ContainerRef(webPod(), "main"), Type: v1.EventTypeWarning, Reason: "Unhealthy", Message: "no 400"})
	events = r.lastEvents()
	require.Len(t, events, maxEvents)
	assert.Equal(t, "no 400", events[0].Message)
	assert.Equal(t, 2, events[0].Count)
	assert.False(t, events[0].Last.Before(began))
	assert.False(t, events[0].First.After(began))
}

func TestTheLastPlanOfAPodIsKept(t *testing.T) {
	r := new(History)
	did := cri.SyncInfo{
		Pod: webPod(), Begin: noon, End: noon.Add(time.Second), Plan: plan.Plan{CreateSandbox: true, Start: []plan.Start{{Kind: plan.Regular, Name: "main", Why: "it has not run yet"}}},
		Result: runtime.SyncResult{Actions: []runtime.Action{
			{Kind: runtime.CreatePodSandbox, Target: "web_default"},
			{Kind: runtime.StartContainer, Target: "main", Err: errors.New("no"), Reason: "ErrImagePull", Message: "no such image"},
		}},
	}
	assert.Zero(t, r.lastPlan("u"))
	r.Synced(did)
	want := page.Plan{
		At: noon, Took: time.Second, Steps: []string{"create a sandbox, attempt 0", "start container main: it has not run yet"},
		Results: []page.Result{{Action: "CreatePodSandbox web_default"}, {Action: "StartContainer main", Err: `failed to "StartContainer" for "main" with ErrImagePull: "no such image"`}},
	}
	assert.Equal(t, want, r.lastPlan("u"))

	// An empty plan only updates the time.
	r.Synced(cri.SyncInfo{Pod: webPod(), Begin: noon.Add(time.Minute), End: noon.Add(time.Minute)})
	want.Looked = noon.Add(time.Minute)
	assert.Equal(t, want, r.lastPlan("u"))
	other := webPod()
	other.UID = "v"
	r.Synced(cri.SyncInfo{Pod: other, Begin: noon, End: noon})
	assert.Equal(t, page.Plan{At: noon}, r.lastPlan("v"))

	_ = r.Retain(t.Context(), func(uid types.UID) bool { return uid == "v" })
	assert.Zero(t, r.lastPlan("u"))
	assert.NotZero(t, r.lastPlan("v"))

	for i := range maxPlans + 10 {
		other.UID = types.UID(fmt.Sprint(i))
		r.Synced(cri.SyncInfo{Pod: other, Begin: noon.Add(time.Duration(i+1) * time.Second), End: noon})
	}
	assert.Len(t, r.plans, maxPlans)
	assert.Zero(t, r.lastPlan("v"), "the oldest")
	assert.NotZero(t, r.lastPlan(other.UID))
}

func TestMeasurementsAreKept(t *testing.T) {
	r := new(History)
	thresholds := []eviction.Threshold{
		{Signal: eviction.MemoryAvailable, Value: eviction.Value{Quantity: new(resource.MustParse("100Mi"))}},
		{Signal: eviction.MemoryAvailable, Value: eviction.Value{Percentage: 0.25}, GracePeriod: time.Minute},
	}
	r.EvictionPass(eviction.Result{}, errors.New("nothing could be measured"))
	_, err := r.lastSignals(thresholds)
	require.EqualError(t, err, "nothing could be measured")
	for i := range 500 {
		at := noon.Add(time.Duration(i) * 10 * time.Second)
		p := &eviction.Plan{At: at, Observations: []eviction.Observation{
			{Signal: eviction.PIDAvailable, Available: int64(i), Capacity: 1000},
			{Signal: eviction.MemoryAvailable, Available: 1 << 30, Capacity: 8 << 30},
		}}
		if i == 499 {
			p.Met = []eviction.MetThreshold{{Threshold: thresholds[1], Since: at.Add(-time.Minute)}}
		}
		r.EvictionPass(eviction.Result{Plan: p}, nil)
	}
	signals, err := r.lastSignals(thresholds)
	require.NoError(t, err)
	require.Len(t, signals, 2)
	memory, pids := signals[0], signals[1]
	assert.Equal(t, "memory.available", memory.Name)
	assert.Equal(t, []page.Line{{At: 100 << 20, Text: "100Mi"}, {At: 2 << 30, Text: "25%", Soft: true, Wait: time.Minute}}, memory.Lines)
	assert.Equal(t, "It has been below 25% for 1m0s.", memory.Met)
	assert.Equal(t, page.Bytes, memory.Unit)
	assert.Equal(t, page.Count, pids.Unit)
	require.Len(t, pids.Points, maxPoints)
	assert.Equal(t, page.Point{At: noon.Add(4990 * time.Second), Available: 499}, pids.Points[maxPoints-1])
	assert.EqualValues(t, 500-maxPoints, pids.Points[0].Available)
}
