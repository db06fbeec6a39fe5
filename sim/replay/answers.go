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

func relate(recorded, replayed step) relation {
	switch {
	case recorded == before && replayed == after:
		return ahead
	case recorded == after && replayed == before:
		return behind
	}
	return same
}

// existence reports whether a thing must be added to a recorded answer, or removed from it.
func (t *replayed) existence(read *call) (add, drop bool) {
	created, removed := before, recordedStep(t.thing.remove, read)
	if t.thing.create != nil {
		created = recordedStep(t.thing.create, read)
	} else if t.request == nil {
		created = after
	}
	c, r := relate(created, t.create), relate(removed, t.remove)
	return c == ahead && t.remove != after || r == behind && t.create != before, c == behind || r == ahead
}

// correct changes a recorded answer where the replayed agent is ahead of or behind the recorded one. The
// caller holds mu.
func (w *world) correct(read *call, request []byte, answer proto.Message) error {
	switch a := answer.(type) {
	case *runtimeapi.ListContainersResponse:
		w.correctContainers(read, request, a)
	case *runtimeapi.ListPodSandboxResponse:
		w.correctSandboxes(read, request, a)
	case *runtimeapi.ContainerStatusResponse:
		t := w.things[parse(request).ContainerID]
		if t == nil {
			return nil
		}
		if _, drop := t.existence(read); drop {
			return status.Errorf(codes.NotFound, "replay: container %q not found", t.id)
		}
		if a.Status != nil {
			state := t.state(read, a.Status.State, w.now())
			if state != a.Status.State && state == runtimeapi.ContainerState_CONTAINER_EXITED {
				a.Status = proto.CloneOf(t.exited)
			}
			a.Status.State = state
		}
	case *runtimeapi.PodSandboxStatusResponse:
		if t := w.things[parse(request).PodSandboxID]; t != nil {
			if _, drop := t.existence(read); drop {
				return status.Errorf(codes.NotFound, "replay: sandbox %q not found", t.id)
			}
			if a.Status != nil {
				a.Status.State = t.sandboxState(read, a.Status.State)
			}
		}
	}
	return nil
}

// sandboxState returns the state of a sandbox that was listed in a state.
func (t *replayed) sandboxState(read *call, s runtimeapi.PodSandboxState) runtimeapi.PodSandboxState {
	switch relate(recordedStep(t.thing.stop, read), t.stop) {
	case ahead:
		return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	case behind:
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return s
}

// exitedSince reports whether a container has exited since a read, in the recording and in the replay.
func (t *replayed) exitedSince(read *call, now time.Duration) bool {
	if t.exited == nil || t.exit <= read.end || t.exit > now {
		return false
	}
	stopped := t.thing.stop != nil && t.thing.stop.begin <= t.exit
	return !stopped || t.stop != before
}

// state returns the state of a container that was listed in a state.
func (t *replayed) state(read *call, s runtimeapi.ContainerState, now time.Duration) runtimeapi.ContainerState {
	if s == runtimeapi.ContainerState_CONTAINER_RUNNING && t.exitedSince(read, now) {
		return runtimeapi.ContainerState_CONTAINER_EXITED
	}
	recorded := recordedStep(t.thing.start, read)
	switch relation := relate(recorded, t.start); {
	case t.thing.start == nil && t.start == before:
		return s // an earlier agent has started it
	case relation == ahead && s == runtimeapi.ContainerState_CONTAINER_CREATED:
		return runtimeapi.ContainerState_CONTAINER_RUNNING
	case relation == behind:
		return runtimeapi.ContainerState_CONTAINER_CREATED
	}
	return s
}

func (w *world) correctContainers(read *call, request []byte, a *runtimeapi.ListContainersResponse) {
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
		_, drop := t.existence(read)
		c.State = t.state(read, c.State, w.now())
		return drop
	})
	for _, id := range slices.Sorted(maps.Keys(w.things)) {
		t := w.things[id]
		if add, _ := t.existence(read); t.thing.sandbox == "" || listed[id] || !add {
			continue
		}
		if c := t.asContainer(read); matches(req.Filter, c) {
			a.Containers = append(a.Containers, c)
		}
	}
}

func (w *world) correctSandboxes(read *call, request []byte, a *runtimeapi.ListPodSandboxResponse) {
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
		s.State = t.sandboxState(read, s.State)
		_, drop := t.existence(read)
		return drop
	})
	for _, id := range slices.Sorted(maps.Keys(w.things)) {
		t := w.things[id]
		if add, _ := t.existence(read); t.thing.sandbox != "" || listed[id] || !add {
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
func (t *replayed) asContainer(read *call) *runtimeapi.Container {
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
	if t.start == after && c.State == runtimeapi.ContainerState_CONTAINER_CREATED {
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
		w.correctContainers(&call{begin: -1, end: -1}, request, a)
	case *runtimeapi.ListPodSandboxResponse:
		w.correctSandboxes(&call{begin: -1, end: -1}, request, a)
	case *runtimeapi.ContainerStatusResponse:
		t := w.things[f.ContainerID]
		if t == nil || t.create != after || t.remove == after {
			return status.Errorf(codes.NotFound, "replay: container %q not found", f.ContainerID)
		}
		c := t.asContainer(read)
		a.Status = &runtimeapi.ContainerStatus{
			Id: c.Id, Metadata: c.Metadata, State: c.State, CreatedAt: w.wall(), StartedAt: w.wall(), Image: c.Image, ImageRef: c.ImageRef,
			Labels: c.Labels, Annotations: c.Annotations,
		}
	case *runtimeapi.PodSandboxStatusResponse:
		t := w.things[f.PodSandboxID]
		if t == nil || t.create != after || t.remove == after {
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
	w.things[t.id] = &replayed{thing: t, create: after, request: request}
	return t.id
}
