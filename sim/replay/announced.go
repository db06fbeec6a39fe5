package replay

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/sim/record"
)

// An inspection is a recorded inspection of a pod. Whether the status of an event answered it depended on what else happened at that
// instant, so that a replay does not decide it again: an inspection of the replayed agent makes calls unless an announced status answered the
// recorded one that is nearest. An announced status is a read of the recording, too, for an inspection that makes calls
// where the recorded one did not.
type inspection struct {
	at    time.Duration
	reads []*call // that an announced status stands for; nil if the inspection made calls
}

// announced adds what announced statuses stand for to the calls, and returns the inspections of each pod that has one.
func (x *index) announced(frames []record.Frame) {
	events := map[types.UID]*runtimeapi.ContainerEventResponse{} // the last ones that are not outdated
	for i, f := range frames {
		switch {
		case f.Event != nil:
			e := new(runtimeapi.ContainerEventResponse)
			if decode(f.Event.Message, e) != nil || e.ContainerEventType == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT {
				continue
			}
			if uid := types.UID(e.GetPodSandboxStatus().GetMetadata().GetUid()); uid != "" && !older(e, events[uid]) {
				events[uid] = e
			}
		case f.Announced != nil && f.Announced.Pod != "":
			uid := f.Announced.Pod
			e := events[uid]
			if f.Announced.Empty {
				e = nil
			}
			reads := readsOf(uid, e, f.At, i)
			x.calls = append(x.calls, reads...)
			x.inspections[uid] = append(x.inspections[uid], inspection{f.At, reads})
		}
	}
	for _, c := range x.calls {
		if c.method != "ListPodSandbox" || c.hangs || c.event {
			continue
		}
		var req runtimeapi.ListPodSandboxRequest
		if decode(c.request, &req) != nil {
			continue
		}
		uid := types.UID(req.GetFilter().GetLabelSelector()[podUIDLabel])
		if list := x.inspections[uid]; len(list) > 0 {
			x.inspections[uid] = append(list, inspection{at: c.begin})
		}
	}
	for _, list := range x.inspections {
		slices.SortStableFunc(list, func(a, b inspection) int { return cmp.Compare(a.at, b.at) })
	}
}

// older reports whether an event has a container in an earlier state than an event before it. Events may arrive in any order.
func older(e, before *runtimeapi.ContainerEventResponse) bool {
	for _, c := range e.GetContainersStatuses() {
		for _, was := range before.GetContainersStatuses() {
			if c.GetId() == was.GetId() && c.GetState() < was.GetState() {
				return true
			}
		}
	}
	return false
}

// readsOf returns the calls that would have had the answers in an event: the lists of the pod, and the statuses of its containers and of
// a sandbox that is not ready. (The event of a ready one may be from before it had a network.) Without an event the pod has nothing.
func readsOf(uid types.UID, e *runtimeapi.ContainerEventResponse, at time.Duration, index int) (reads []*call) {
	read := func(method string, request, answer []byte) {
		reads = append(reads, &call{index: index, begin: at, end: at, method: method, request: request, answer: answer, event: true})
	}
	var sandboxes runtimeapi.ListPodSandboxResponse
	var containers runtimeapi.ListContainersResponse
	if s := e.GetPodSandboxStatus(); s.GetId() != "" {
		sandboxes.Items = []*runtimeapi.PodSandbox{{
			Id: s.Id, Metadata: s.Metadata, State: s.State, CreatedAt: s.CreatedAt, Labels: s.Labels, Annotations: s.Annotations, RuntimeHandler: s.RuntimeHandler,
		}}
		if s.State != runtimeapi.PodSandboxState_SANDBOX_READY {
			read("PodSandboxStatus", encode(&runtimeapi.PodSandboxStatusRequest{PodSandboxId: s.Id}), encode(&runtimeapi.PodSandboxStatusResponse{Status: s}))
		}
	}
	for _, c := range e.GetContainersStatuses() {
		if c.GetId() == "" {
			continue
		}
		containers.Containers = append(containers.Containers, &runtimeapi.Container{
			Id: c.Id, PodSandboxId: e.GetPodSandboxStatus().GetId(), Metadata: c.Metadata, Image: c.Image, ImageRef: c.ImageRef, ImageId: c.ImageId, State: c.State,
			CreatedAt: c.CreatedAt, Labels: c.Labels, Annotations: c.Annotations,
		})
		read("ContainerStatus", encode(&runtimeapi.ContainerStatusRequest{ContainerId: c.Id}), encode(&runtimeapi.ContainerStatusResponse{Status: c}))
	}
	selector := map[string]string{podUIDLabel: string(uid)}
	read("ListPodSandbox", encode(&runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: selector}}), encode(&sandboxes))
	read("ListContainers", encode(&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: selector}}), encode(&containers))
	return reads
}

// nearestInspection returns the recorded inspection of a pod that is nearest to a time; nil if none was announced.
func (x *index) nearestInspection(uid types.UID, at time.Duration) *inspection {
	list := x.inspections[uid]
	i, _ := slices.BinarySearchFunc(list, at, func(in inspection, at time.Duration) int { return cmp.Compare(in.at, at) })
	switch {
	case len(list) == 0:
		return nil
	case i == len(list) || i > 0 && at-list[i-1].at < list[i].at-at:
		return &list[i-1]
	}
	return &list[i]
}

// inspect inspects a pod: with an announced status if that is allowed and answered the recorded inspection.
func (w *world) inspect(ctx context.Context, uid types.UID, next runtime.Lister) (*runtime.PodStatus, error) {
	if w.model != nil || !runtime.AnnouncedAllowed(ctx) {
		return next.PodStatus(ctx, uid)
	}
	recorded := w.x.nearestInspection(uid, w.now())
	if recorded == nil || recorded.reads == nil {
		return next.PodStatus(unannounced{ctx}, uid)
	}
	called := new(atomic.Bool)
	st, err := next.PodStatus(context.WithValue(ctx, inspectionKey{}, called), uid)
	if !called.Load() {
		w.mu.Lock()
		for _, c := range recorded.reads {
			w.passed[c] = true
		}
		w.mu.Unlock()
	}
	return st, err
}

// inspectionKey is the key of the flag in the context of an inspection that a call sets.
type inspectionKey struct{}

// inspects records that the inspection with this context makes calls.
func inspects(ctx context.Context) {
	if called, ok := ctx.Value(inspectionKey{}).(*atomic.Bool); ok {
		called.Store(true)
	}
}

// An unannounced context does not allow announced statuses: it has no values.
type unannounced struct{ context.Context }

func (unannounced) Value(any) any { return nil }
