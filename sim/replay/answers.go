package replay

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// recordedStep returns how far a recorded call was when a read was made.
func recordedStep(s *span, read *call) step {
	switch {
	case s == nil || read.end < s.begin:
		return before
	case read.begin > s.end || read.begin == s.end && read.index > s.index:
		return after
	}
	return during
}

// A relation is how the replayed runtime differs from the recorded one at the time of a read.
type relation int

const (
	same   relation = iota
	ahead           // the replayed agent has already done it
	behind          // the replayed agent has not done it yet
)

// relate compares the call of a replayed agent with the recorded one, as far as a read that began at a time must
// reflect them: a call that had returned by then.
func relate(recorded step, replayed progress, began time.Duration) relation {
	switch {
	case recorded != after && replayed.step == after && replayed.at <= began:
		return ahead
	case recorded == after && replayed.step == before:
		return behind
	}
	return same
}

// existence reports whether a thing must be added to a recorded answer, or removed from it.
func (t *replayed) existence(read *call, began time.Duration) (add, drop bool) {
	if t.thing.goneBetween(read, began) {
		return false, true
	}
	created := after // by an earlier agent
	if t.thing.create != nil || t.request != nil {
		created = recordedStep(t.thing.create, read)
	}
	c, r := relate(created, t.create, began), relate(recordedStep(t.thing.remove, read), t.remove, began)
	return c == ahead && t.remove.step != after || r == behind && t.create.step != before, c == behind || r == ahead
}

// goneBetween reports whether another program removed a thing after a read was recorded, and before the replayed one.
func (t *thing) goneBetween(read *call, began time.Duration) bool {
	return t.gone > 0 && t.gone <= began && read.begin < t.gone
}

// correct changes a recorded answer where the replayed agent is ahead of or behind the recorded one. The
// caller holds mu.
func (w *world) correct(read *call, began time.Duration, request []byte, answer proto.Message) error {
	switch a := answer.(type) {
	case *runtimeapi.ListContainersResponse:
		w.correctContainers(read, began, request, a)
	case *runtimeapi.ListPodSandboxResponse:
		w.correctSandboxes(read, began, request, a)
	case *runtimeapi.ContainerStatusResponse:
		t := w.things[parse(request).ContainerID]
		if t == nil {
			return nil
		}
		if _, drop := t.existence(read, began); drop {
			return status.Errorf(codes.NotFound, "replay: container %q not found", t.id)
		}
		if a.Status != nil {
			state := t.state(read, began, a.Status.State, w.now())
			switch {
			case state == a.Status.State:
			case state == runtimeapi.ContainerState_CONTAINER_EXITED && t.exited != nil:
				a.Status = proto.CloneOf(t.exited)
			case state == runtimeapi.ContainerState_CONTAINER_RUNNING && t.running != nil:
				a.Status = proto.CloneOf(t.running)
			}
			a.Status.State = state
		}
	case *runtimeapi.PodSandboxStatusResponse:
		if t := w.things[parse(request).PodSandboxID]; t != nil {
			if _, drop := t.existence(read, began); drop {
				return status.Errorf(codes.NotFound, "replay: sandbox %q not found", t.id)
			}
			if a.Status != nil {
				a.Status.State = t.sandboxState(read, began, a.Status.State)
			}
		}
	}
	return nil
}

// sandboxState returns the state of a sandbox that was listed in a state.
func (t *replayed) sandboxState(read *call, began time.Duration, s runtimeapi.PodSandboxState) runtimeapi.PodSandboxState {
	switch relate(recordedStep(t.thing.stop, read), t.stop, began) {
	case ahead:
		return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	case behind:
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return s
}

// hasExited reports whether the runtime has reported the exit of a container in the
// recording, and the agent has stopped it if the recorded one did.
func (t *replayed) hasExited(now time.Duration) bool {
	if t.exited == nil || t.reported > now {
		return false
	}
	return !t.wouldRun()
}

// wouldRun reports whether a container exited in the recording because the agent stopped it, and the replayed agent has
// not.
func (t *replayed) wouldRun() bool {
	return t.exited != nil && t.thing.stop != nil && t.thing.stop.begin < t.exit && t.stop.step == before
}

// state returns the state of a container that was listed in a state.
func (t *replayed) state(read *call, began time.Duration, s runtimeapi.ContainerState, now time.Duration) runtimeapi.ContainerState {
	if s == runtimeapi.ContainerState_CONTAINER_RUNNING && t.reported > read.end && t.hasExited(now) {
		return runtimeapi.ContainerState_CONTAINER_EXITED
	}
	switch relation := relate(recordedStep(t.thing.start, read), t.start, began); {
	case t.thing.start == nil && t.start.step == before:
		return s // an earlier agent has started it
	case s == runtimeapi.ContainerState_CONTAINER_EXITED && t.wouldRun():
		return runtimeapi.ContainerState_CONTAINER_RUNNING
	case relation == ahead && s == runtimeapi.ContainerState_CONTAINER_CREATED && t.hasExited(now):
		return runtimeapi.ContainerState_CONTAINER_EXITED
	case relation == ahead && s == runtimeapi.ContainerState_CONTAINER_CREATED:
		return runtimeapi.ContainerState_CONTAINER_RUNNING
	case relation == behind:
		return runtimeapi.ContainerState_CONTAINER_CREATED
	}
	return s
}

func (w *world) correctContainers(read *call, began time.Duration, request []byte, a *runtimeapi.ListContainersResponse) {
	var req runtimeapi.ListContainersRequest
	if decode(request, &req) != nil {
		return
	}
	listed := map[string]bool{}
	a.Containers = slices.DeleteFunc(a.Containers, func(c *runtimeapi.Container) bool {
		t := w.things[c.GetId()]
		if c == nil || t == nil { // of a pod that is not replayed
			return true
		}
		listed[t.id] = true
		_, drop := t.existence(read, began)
		c.State = t.state(read, began, c.State, w.now())
		return drop
	})
	for _, id := range slices.Sorted(maps.Keys(w.things)) {
		t := w.things[id]
		if add, _ := t.existence(read, began); t.thing.sandbox == "" || listed[id] || !add {
			continue
		}
		if c := t.asContainer(read, w.now()); matches(req.Filter, c) {
			a.Containers = append(a.Containers, c)
		}
	}
}

func (w *world) correctSandboxes(read *call, began time.Duration, request []byte, a *runtimeapi.ListPodSandboxResponse) {
	var req runtimeapi.ListPodSandboxRequest
	if decode(request, &req) != nil {
		return
	}
	listed := map[string]bool{}
	a.Items = slices.DeleteFunc(a.Items, func(s *runtimeapi.PodSandbox) bool {
		t := w.things[s.GetId()]
		if s == nil || t == nil {
			return true
		}
		listed[t.id] = true
		s.State = t.sandboxState(read, began, s.State)
		_, drop := t.existence(read, began)
		return drop
	})
	for _, id := range slices.Sorted(maps.Keys(w.things)) {
		t := w.things[id]
		if add, _ := t.existence(read, began); t.thing.sandbox != "" || listed[id] || !add {
			continue
		}
		s := t.asSandbox(read)
		if f := req.Filter; f == nil || (f.Id == "" || f.Id == id) && selects(f.LabelSelector, s.Labels) && (f.State == nil || f.State.State == s.State) {
			a.Items = append(a.Items, s)
		}
	}
}

func matches(f *runtimeapi.ContainerFilter, c *runtimeapi.Container) bool {
	return f == nil || (f.Id == "" || f.Id == c.Id) && (f.PodSandboxId == "" || f.PodSandboxId == c.PodSandboxId) &&
		selects(f.LabelSelector, c.Labels) && (f.State == nil || f.State.State == c.State)
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// nearest returns the observation of a thing that is nearest to a read.
func nearest[T any](all []observed[T], read *call) (value T, ok bool) {
	for _, o := range all {
		if !ok || o.at.begin <= read.begin {
			value, ok = o.value, true
		}
	}
	return value, ok
}

// asContainer returns a container as it would be listed.
func (t *replayed) asContainer(read *call, now time.Duration) *runtimeapi.Container {
	c, ok := nearest(t.container, read)
	if ok {
		c = proto.CloneOf(c)
	} else {
		var req runtimeapi.CreateContainerRequest
		_ = decode(t.request, &req) // an invalid one has no fields
		c = &runtimeapi.Container{
			Id: t.id, PodSandboxId: t.sandbox, Metadata: &runtimeapi.ContainerMetadata{Name: t.name, Attempt: t.attempt}, Image: req.GetConfig().GetImage(),
			Labels: req.GetConfig().GetLabels(), Annotations: req.GetConfig().GetAnnotations(), CreatedAt: read.begin.Nanoseconds(),
		}
		if c.Labels == nil {
			c.Labels = map[string]string{podUIDLabel: string(t.pod)}
		}
	}
	switch {
	case t.thing.create == nil && t.request == nil: // of an earlier agent
	case t.start.step != after:
		c.State = runtimeapi.ContainerState_CONTAINER_CREATED
	case t.hasExited(now):
		c.State = runtimeapi.ContainerState_CONTAINER_EXITED
	default:
		c.State = runtimeapi.ContainerState_CONTAINER_RUNNING
	}
	return c
}

// asSandbox returns a sandbox as it would be listed.
func (t *replayed) asSandbox(read *call) *runtimeapi.PodSandbox {
	if s, ok := nearest(t.listed, read); ok {
		return proto.CloneOf(s)
	}
	var req runtimeapi.RunPodSandboxRequest
	_ = decode(t.request, &req)
	s := &runtimeapi.PodSandbox{
		Id: t.id, Metadata: req.GetConfig().GetMetadata(), Labels: req.GetConfig().GetLabels(), Annotations: req.GetConfig().GetAnnotations(),
		CreatedAt: read.begin.Nanoseconds(),
	}
	if s.Metadata == nil {
		s.Metadata = &runtimeapi.PodSandboxMetadata{Uid: string(t.pod), Attempt: t.attempt}
		s.Labels = map[string]string{podUIDLabel: string(t.pod)}
	}
	return s
}

// answer answers a call that was not recorded. The caller holds mu.
func (w *world) answer(method string, request []byte, answer proto.Message) error {
	f, read := parse(request), &call{method: method, begin: w.now(), end: w.now(), index: int(^uint(0) >> 1)}
	switch a := answer.(type) {
	case *runtimeapi.RunPodSandboxResponse:
		if f.Config == nil {
			return errNotRecorded(method)
		}
		a.PodSandboxId = w.create(&thing{pod: w.x.podOf(f), attempt: f.Config.Metadata.Attempt}, request)
	case *runtimeapi.CreateContainerResponse:
		if f.Config == nil {
			return errNotRecorded(method)
		}
		a.ContainerId = w.create(&thing{pod: w.x.podOf(f), sandbox: f.PodSandboxID, name: f.Config.Metadata.Name, attempt: f.Config.Metadata.Attempt}, request)
	case *runtimeapi.ListContainersResponse:
		w.correctContainers(&call{begin: -1, end: -1}, w.now(), request, a)
	case *runtimeapi.ListPodSandboxResponse:
		w.correctSandboxes(&call{begin: -1, end: -1}, w.now(), request, a)
	case *runtimeapi.ContainerStatusResponse:
		t := w.things[f.ContainerID]
		if t == nil || t.create.step != after || t.remove.step == after || t.gone > 0 && t.gone <= w.now() {
			return status.Errorf(codes.NotFound, "replay: container %q not found", f.ContainerID)
		}
		c := t.asContainer(read, w.now())
		a.Status = &runtimeapi.ContainerStatus{
			Id: c.Id, Metadata: c.Metadata, State: c.State, CreatedAt: w.wall(), StartedAt: w.wall(), Image: c.Image, ImageRef: c.ImageRef,
			Labels: c.Labels, Annotations: c.Annotations,
		}
	case *runtimeapi.PodSandboxStatusResponse:
		t := w.things[f.PodSandboxID]
		if t == nil || t.create.step != after || t.remove.step == after || t.gone > 0 && t.gone <= w.now() {
			return status.Errorf(codes.NotFound, "replay: sandbox %q not found", f.PodSandboxID)
		}
		s := t.asSandbox(read)
		a.Status = &runtimeapi.PodSandboxStatus{
			Id: s.Id, Metadata: s.Metadata, State: s.State, CreatedAt: w.wall(), Labels: s.Labels, Annotations: s.Annotations,
		}
	case *runtimeapi.PullImageResponse:
		a.ImageRef = "unrecorded"
	case *runtimeapi.ImageStatusResponse, *runtimeapi.ListImagesResponse:
	default:
		if !changes[method] {
			return errNotRecorded(method)
		}
		w.done(method, request, nil)
	}
	return nil
}

// wall returns the wall clock in the form of the CRI.
func (w *world) wall() int64 { return w.start.Add(w.now()).UnixNano() }

// create adds a thing that was not recorded, and returns its ID.
func (w *world) create(t *thing, request []byte) string {
	w.created++
	t.id = fmt.Sprintf("unrecorded-%d", w.created)
	w.things[t.id] = &replayed{thing: t, create: progress{after, w.now()}, request: request}
	return t.id
}
