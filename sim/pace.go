package sim

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
)

// A pace blocks for the latency of a step between two components. In a bubble,
// everything between two calls to the outside happens at one virtual instant, in an
// order that the Go scheduler chooses; with latencies derived from the seed, the seed
// determines the order.
type pace func(what string, uid types.UID)

// A later is a pace that does not block: it calls do after the latency.
type later func(what string, uid types.UID, do func())

// followerPause returns the time that a follower of pleg takes for an event: up to 3 s.
func followerPause(seed uint64, e pleg.Event) time.Duration {
	return time.Duration(hash(seed, 6, 0, 0, string(e.Type), e.ContainerID, string(e.UID)) % uint64(3*time.Second))
}

// The wrappers below call pace before each call that may block, unless they say otherwise.

// Reconcile has no latency because the Loop calls it with a lock held.
type pacedReporter struct {
	pipeline.Reporter
	pace pace
}

func (r pacedReporter) Report(pod *v1.Pod, observed *runtime.PodStatus, starts map[string]v1.ContainerStateWaiting, end runtime.Termination) v1.PodStatus {
	r.pace("Report", pod.UID)
	return r.Reporter.Report(pod, observed, starts, end)
}

func (r pacedReporter) Finish(pod *v1.Pod) {
	r.pace("Finish", pod.UID)
	r.Reporter.Finish(pod)
}

type pacedAllocation struct {
	pipeline.Allocation
	pace pace
}

func (a pacedAllocation) Allocate(ctx context.Context, pod *v1.Pod, observed *runtime.PodStatus) *v1.Pod {
	a.pace("Allocate", pod.UID)
	return a.Allocation.Allocate(ctx, pod, observed)
}

// pacedProbes calls pace after Add: results of the new probes that the prober has
// reported by then are reported before SyncPod is called.
type pacedProbes struct {
	pipeline.Probes
	pace pace
}

func (p pacedProbes) Add(pod *v1.Pod) {
	p.Probes.Add(pod)
	p.pace("Add", pod.UID)
}

// pacedHandler calls pace after the calls that report the status of their pod while the runtime works: a
// report in progress delays the end of the call, and both continue at the same instant.
type pacedHandler struct {
	podworker.Handler
	pace pace
}

func (h pacedHandler) Sync(ctx context.Context, req podworker.SyncRequest) (podworker.SyncResult, error) {
	defer h.pace("Synced", req.UID)
	return h.Handler.Sync(ctx, req)
}

func (h pacedHandler) Terminate(ctx context.Context, req podworker.SyncRequest) error {
	defer h.pace("Terminated", req.UID)
	return h.Handler.Terminate(ctx, req)
}

func (h pacedHandler) Unwrap() any { return h.Handler }

type pacedStatuses struct {
	podworker.StatusCache
	pace pace
}

func (s pacedStatuses) GetNewerThan(ctx context.Context, uid types.UID, t time.Time) (*runtime.PodStatus, error) {
	s.pace("GetNewerThan", uid)
	return s.StatusCache.GetNewerThan(ctx, uid, t)
}

type pacedSink struct {
	podsource.Sink
	pace pace
}

func (s pacedSink) AddPods(pods []*v1.Pod) {
	s.pace("AddPods", pods[0].UID)
	s.Sink.AddPods(pods)
}

func (s pacedSink) UpdatePods(pods []*v1.Pod) {
	s.pace("UpdatePods", pods[0].UID)
	s.Sink.UpdatePods(pods)
}

func (s pacedSink) RemovePods(pods []*v1.Pod) {
	s.pace("RemovePods", pods[0].UID)
	s.Sink.RemovePods(pods)
}

func (s pacedSink) SourceSynced(source string) {
	s.pace("SourceSynced", types.UID(source))
	s.Sink.SourceSynced(source)
}

func (s pacedSink) ReconcilePods(pods []*v1.Pod) {
	s.pace("ReconcilePods", pods[0].UID)
	s.Sink.ReconcilePods(pods)
}
