package replay

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/sim/record"
)

// source returns a source that delivers the recorded sets at their times.
func (w *world) source(name string, frames []record.Frame) podsource.PodSource {
	if w.model != nil {
		return w.model.source(name, frames)
	}
	return podsource.Func(func(ctx context.Context, set func([]*v1.Pod)) error {
		var pods []*v1.Pod
		for _, f := range frames {
			if f.At > w.x.end || w.sleepUntil(ctx, "source "+name, f.At) != nil {
				break
			}
			pods = apply(pods, f.Pods)
			set(pods)
		}
		<-ctx.Done()
		return nil
	})
}

// apply returns the set after a difference. The order of a set is not recorded: pods are in the order
// in which they were added.
func apply(set []*v1.Pod, p *record.Pods) []*v1.Pod {
	gone := map[types.UID]bool{}
	for _, uid := range p.Removed {
		gone[uid] = true
	}
	changed := map[types.UID]*v1.Pod{}
	for _, pod := range p.Changed {
		if pod != nil && pod.UID != "" {
			changed[pod.UID] = withoutReferences(pod)
		}
	}
	var out []*v1.Pod
	for _, pod := range set {
		if now := changed[pod.UID]; now != nil {
			out = append(out, now)
			delete(changed, pod.UID)
		} else if !gone[pod.UID] {
			out = append(out, pod)
		}
	}
	for _, pod := range p.Changed {
		if pod != nil && changed[pod.UID] != nil {
			out = append(out, changed[pod.UID])
			delete(changed, pod.UID)
		}
	}
	return out
}

// withoutReferences returns a copy of a pod without what refers to objects that are not recorded, and
// without hooks that are sent over the network.
func withoutReferences(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	for i, v := range pod.Spec.Volumes {
		if v.Image == nil {
			pod.Spec.Volumes[i].VolumeSource = v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}
		}
	}
	pod.Spec.RuntimeClassName = nil
	pod.Spec.ImagePullSecrets = nil
	pod.Spec.ResourceClaims = nil
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			containerWithoutReferences(&list[i].Env, &list[i].EnvFrom, &list[i].Lifecycle)
			list[i].Resources.Claims = nil
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i]
		containerWithoutReferences(&c.Env, &c.EnvFrom, &c.Lifecycle)
	}
	return pod
}

func containerWithoutReferences(env *[]v1.EnvVar, from *[]v1.EnvFromSource, hooks **v1.Lifecycle) {
	*from = nil
	for i := range *env {
		if (*env)[i].ValueFrom != nil {
			(*env)[i] = v1.EnvVar{Name: (*env)[i].Name, Value: mask}
		}
	}
	local := func(h *v1.LifecycleHandler) *v1.LifecycleHandler {
		if h == nil || h.HTTPGet == nil && h.TCPSocket == nil {
			return h
		}
		return nil
	}
	if *hooks != nil {
		(*hooks).PostStart, (*hooks).PreStop = local((*hooks).PostStart), local((*hooks).PreStop)
	}
}

// afterCalls is how much later than recorded an event is delivered, so that the replayed calls of that
// instant have begun.
const afterCalls = 10 * time.Microsecond

// deliver is GetContainerEvents. An event is delivered at its time, but not before the replayed agent has
// made the call that it is the effect of.
func (w *world) deliver(ctx context.Context, out chan *runtimeapi.ContainerEventResponse) error {
	if w.model != nil {
		return w.model.deliver(ctx, out)
	}
	const key = "GetContainerEvents{}"
	w.mu.Lock()
	began := w.now()
	c, extra := w.read(key)
	if extra {
		c = w.nextStream(key)
	}
	w.mu.Unlock()
	if c.hangs && len(w.x.reads[key]) == 0 && len(w.x.events) == 0 {
		return status.Error(codes.Unimplemented, "replay: no events were recorded")
	}
	late, cancel := context.WithCancel(ctx)
	var removals sync.WaitGroup
	defer removals.Wait()
	defer cancel()
	for _, f := range w.x.events {
		if f.At < c.begin || f.At > c.end && !c.hangs {
			continue
		}
		e := new(runtimeapi.ContainerEventResponse)
		if decode(f.Event.Message, e) != nil || !w.replays(e) {
			continue
		}
		if err := w.sleepUntil(ctx, "event "+e.ContainerId, f.At+afterCalls); err != nil {
			return err
		}
		if e.ContainerEventType == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT {
			// The replayed agent may collect this garbage a minute later. Other events do not wait for it.
			removals.Go(func() { _ = w.send(late, e, out) })
		} else if err := w.send(ctx, e, out); err != nil {
			return err
		}
	}
	if extra {
		began = c.begin
	}
	if err := w.wait(ctx, key, began, c); err != nil {
		return err
	}
	return newError(c.err)
}

// send delivers an event when the replayed agent has begun the call that it is an effect of.
func (w *world) send(ctx context.Context, e *runtimeapi.ContainerEventResponse, out chan *runtimeapi.ContainerEventResponse) error {
	if err := w.awaitCause(ctx, e); err != nil {
		return err
	}
	select {
	case out <- e:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// nextStream returns the stream of events that was opened next: the replayed agent opens one earlier than the recorded
// one. After the last one that ended, it is one that was open at the end of the recording. The caller holds mu.
func (w *world) nextStream(key string) *call {
	q, cur := w.x.reads[key], w.cursors[key]
	if cur.next < len(q) {
		cur.next++
		cur.last = q[cur.next-1]
		return cur.last
	}
	c := &call{end: w.x.end, hangs: true} // calls are recorded at their ends, or after 10 seconds
	if cur.last != nil {
		c.begin = cur.last.end
	}
	return c
}

// replays reports whether an event is of a replayed pod.
func (w *world) replays(e *runtimeapi.ContainerEventResponse) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.things[e.ContainerId] != nil {
		return true
	}
	return w.x.pods[types.UID(e.GetPodSandboxStatus().GetMetadata().GetUid())] != "" && w.x.only == ""
}

// awaitCause waits until the replayed agent has begun the call that an event is an effect of.
func (w *world) awaitCause(ctx context.Context, e *runtimeapi.ContainerEventResponse) error {
	for {
		w.mu.Lock()
		t, changed := w.things[e.ContainerId], w.changed
		ready := t == nil || t.caused(e.ContainerEventType)
		w.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

// caused reports whether the call that an event is an effect of has begun, if the recorded agent made it.
func (t *replayed) caused(kind runtimeapi.ContainerEventType) bool {
	switch kind {
	case runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT:
		return t.create.step != before
	case runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT:
		return t.create.step != before && (t.thing.start == nil || t.start.step != before)
	case runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT:
		return t.thing.remove == nil || t.remove.step != before
	}
	return true
}
