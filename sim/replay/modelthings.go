package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/sim"
)

// eventFacts adds the containers in events, which are not in the answers of all runtimes.
func (x *index) eventFacts() {
	for _, f := range x.events {
		var e runtimeapi.ContainerEventResponse
		if decode(f.Event.Message, &e) != nil {
			continue
		}
		for _, s := range e.ContainersStatuses {
			if uid := types.UID(s.GetLabels()[podUIDLabel]); x.only == "" || x.pods[uid] == x.only {
				x.containerStatus(s)
			}
		}
	}
}

// createdAt returns the time at which a recorded thing was created, in nanoseconds since 1970; zero if it is not known.
func (t *thing) createdAt() int64 {
	for _, c := range t.container {
		if c.value.GetCreatedAt() > 0 {
			return c.value.CreatedAt
		}
	}
	for _, s := range t.listed {
		if s.value.GetCreatedAt() > 0 {
			return s.value.CreatedAt
		}
	}
	return cmp.Or(t.running.GetCreatedAt(), t.exited.GetCreatedAt())
}

// first returns the time at which a thing is first known.
func (t *thing) first() time.Duration {
	first := time.Duration(1<<63 - 1)
	for _, c := range t.container {
		first = min(first, c.at.begin)
	}
	for _, s := range t.listed {
		first = min(first, s.at.begin)
	}
	return first
}

// stoppedByAgent reports whether the recorded agent stopped a container.
func (t *thing) stoppedByAgent() bool {
	return t.exited != nil && t.stop != nil && t.stop.begin < t.exit // else it stopped the sandbox afterwards
}

// died returns when a sandbox stopped that the recorded agent did not stop.
func (t *thing) died() (time.Duration, bool) {
	for i, s := range t.listed {
		if s.value.GetState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
			earlier := i == 0 && t.create == nil // it had stopped before the recording
			return s.at.begin, t.stop == nil || t.stop.begin > s.at.begin || earlier && t.stop.begin == s.at.begin
		}
	}
	return 0, false
}

// existed reports whether a thing was created before the recording.
func (x *index) existed(t *thing) bool {
	at := t.createdAt()
	return t.create == nil && at > 0 && at < x.start.UnixNano()
}

// earlier returns the things that existed before the recording, sandboxes first, in the order of their creation.
func (x *index) earlier() (out []*thing) {
	for _, t := range x.things {
		if t.id != "" && x.existed(t) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *thing) int {
		return cmp.Or(cmp.Compare(min(len(a.name), 1), min(len(b.name), 1)), cmp.Compare(a.createdAt(), b.createdAt()), cmp.Compare(a.id, b.id))
	})
	return out
}

// absent returns a recorded thing that the replayed agent may create: the earliest one of
// a pod, container and attempt; nil if there is none. The name of a sandbox is empty.
func (x *index) absent(m *model, pod types.UID, name string, attempt uint32) (best *thing) {
	for _, id := range slices.Sorted(maps.Keys(x.things)) {
		t := x.things[id]
		if id == "" || t.pod != pod || t.name != name || t.attempt != attempt || x.existed(t) || !m.free(t) {
			continue
		}
		if best == nil || t.createdAt() < best.createdAt() {
			best = t
		}
	}
	return best
}

// free reports whether a recorded thing was not created in the replay.
func (m *model) free(t *thing) bool { return !m.used[t.id] }

// sorted returns the items in the order of their IDs.
func (m *model) sorted() []*item {
	return slices.SortedFunc(maps.Values(m.items), func(a, b *item) int { return cmp.Compare(a.id, b.id) })
}

// create adds a thing. The caller holds mu.
func (m *model) create(t *thing, method string, request []byte, f fields) error {
	for _, other := range m.sorted() {
		if other.pod == t.pod && other.name == t.name && other.attempt == t.attempt {
			return status.Errorf(codes.Unknown, "replay: the name of %s, attempt %d, is reserved for %q", cmp.Or(t.name, "the sandbox"), t.attempt, other.id)
		}
	}
	v := &item{thing: t, created: time.Now()}
	if method == "RunPodSandbox" {
		var req runtimeapi.RunPodSandboxRequest
		if err := decode(request, &req); err != nil {
			return err
		}
		v.ready, v.network = true, req.Config.GetLinux().GetSecurityContext().GetNamespaceOptions()
		v.box = &runtimeapi.PodSandbox{
			Id: t.id, Metadata: req.Config.GetMetadata(), Labels: req.Config.GetLabels(), Annotations: req.Config.GetAnnotations(),
			CreatedAt: v.created.UnixNano(), RuntimeHandler: req.RuntimeHandler,
		}
		m.used[t.id], m.items[t.id] = true, v
		m.sandboxChanged(v, sim.SandboxReady)
		if at, ok := t.died(); ok {
			m.dieLater(v, at)
		}
		return nil
	}
	var req runtimeapi.CreateContainerRequest
	if err := decode(request, &req); err != nil {
		return err
	}
	if box := m.items[req.PodSandboxId]; box == nil || box.name != "" || !box.ready {
		return status.Errorf(codes.NotFound, "replay: no ready sandbox %q", req.PodSandboxId)
	}
	t = &thing{id: t.id, sandbox: req.PodSandboxId, pod: t.pod, name: t.name, attempt: t.attempt, stop: t.stop, exited: t.exited, exit: t.exit}
	v.thing, v.logPath, v.terminated = t, req.Config.GetLogPath(), make(chan struct{})
	image := cmp.Or(req.Config.GetImage().GetUserSpecifiedImage(), req.Config.GetImage().GetImage(), "unknown")
	v.container = &runtimeapi.Container{
		Id: t.id, PodSandboxId: t.sandbox, Metadata: req.Config.GetMetadata(), Labels: req.Config.GetLabels(), Annotations: req.Config.GetAnnotations(),
		Image: &runtimeapi.ImageSpec{Image: image, UserSpecifiedImage: image}, ImageRef: syntheticID(image), CreatedAt: v.created.UnixNano(),
	}
	v.status = m.statusOf(v, image)
	v.status.State = runtime.ContainerCreated
	m.used[t.id], m.items[t.id] = true, v
	m.containerChanged(v, sim.Created, false)
	return nil
}

// statusOf returns the status of a container without its state.
func (m *model) statusOf(v *item, image string) runtime.ContainerStatus {
	return runtime.ContainerStatus{
		ID: m.w.runtimeName() + "://" + v.id, Name: v.name, SandboxID: v.sandbox, Image: image, CreatedAt: v.created,
		RestartCount: podconfig.RestartCountOf(v.container.Annotations), Hash: podconfig.HashOf(v.container.Annotations),
	}
}

// dieLater stops a sandbox at a time.
func (m *model) dieLater(v *item, at time.Duration) {
	time.AfterFunc(m.w.delayLocked("sandbox "+v.id, at), func() {
		m.w.mu.Lock()
		defer m.w.mu.Unlock()
		if m.items[v.id] == v {
			m.sandboxDies(v, false)
		}
	})
}

// addEarlier adds a thing that existed before the recording.
func (m *model) addEarlier(t *thing) {
	v := &item{thing: t, created: time.Unix(0, t.createdAt())}
	m.used[t.id], m.items[t.id] = true, v
	if t.name == "" {
		v.ready = true
		v.box = &runtimeapi.PodSandbox{Id: t.id, Metadata: &runtimeapi.PodSandboxMetadata{Uid: string(t.pod), Name: "unknown", Namespace: "unknown", Attempt: t.attempt}, CreatedAt: t.createdAt()}
		if len(t.listed) > 0 {
			first := t.listed[0]
			v.box = proto.CloneOf(first.value)
			v.ready = first.value.State == runtimeapi.PodSandboxState_SANDBOX_READY
		}
		kind := sim.SandboxReady
		if !v.ready {
			kind = sim.SandboxStopped
		}
		m.sandboxChanged(v, kind)
		if at, ok := t.died(); ok && v.ready {
			m.dieLater(v, at)
		}
		return
	}
	v.terminated = make(chan struct{})
	switch s := cmp.Or(t.exited, t.running); {
	case len(t.container) > 0:
		v.container = proto.CloneOf(t.container[0].value)
	case s != nil:
		v.container = &runtimeapi.Container{Id: t.id, PodSandboxId: t.sandbox, Metadata: s.Metadata, Image: s.Image, ImageRef: s.ImageRef, Labels: s.Labels, Annotations: s.Annotations, CreatedAt: s.CreatedAt}
	default: // its ID is listed as that of a sandbox
		v.container = &runtimeapi.Container{Id: t.id, PodSandboxId: t.sandbox, CreatedAt: t.createdAt()}
	}
	if s := cmp.Or(t.exited, t.running); s != nil {
		v.logPath = s.LogPath
		v.container.Image = cmp.Or(s.Image, v.container.Image)
		v.container.ImageRef = cmp.Or(s.ImageRef, v.container.ImageRef)
	}
	image := cmp.Or(v.container.GetImage().GetUserSpecifiedImage(), v.container.GetImage().GetImage(), "unknown")
	v.container.Image = &runtimeapi.ImageSpec{Image: image, UserSpecifiedImage: image}
	v.container.ImageRef = cmp.Or(v.container.ImageRef, syntheticID(image))
	v.sandbox = v.container.PodSandboxId
	v.status = m.statusOf(v, image)
	m.beginEarlier(v)
}

// beginEarlier sets the state of a container that existed before the recording.
func (m *model) beginEarlier(v *item) {
	exited := v.exited
	started := cmp.Or(v.running.GetStartedAt(), exited.GetStartedAt(), v.createdAt())
	switch {
	case exited != nil && exited.FinishedAt < m.w.x.start.UnixNano():
		v.status.State, v.status.StartedAt, v.status.FinishedAt = runtime.ContainerExited, time.Unix(0, started), time.Unix(0, exited.FinishedAt)
		v.status.ExitCode, v.status.Reason, v.message = exited.ExitCode, exited.Reason, exited.Message
		close(v.terminated)
		m.containerChanged(v, sim.Exited, false)
	case len(v.thing.container) > 0 && v.thing.container[0].value.State == runtimeapi.ContainerState_CONTAINER_CREATED && v.running == nil && exited == nil:
		v.status.State = runtime.ContainerCreated
		m.containerChanged(v, sim.Created, false)
	default:
		v.status.State, v.status.StartedAt = runtime.ContainerRunning, time.Unix(0, started)
		m.containerChanged(v, sim.Started, false)
		if exited != nil && !v.stoppedByAgent() {
			m.exitLater(v, v.thing.exit, exited.ExitCode, exited.Reason, exited.Message, false)
		}
	}
}

// syntheticID returns the ID of an image that is not in the recording.
func syntheticID(image string) string { return fmt.Sprintf("sha256:%s", digestOf(image)) }
