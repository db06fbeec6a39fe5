package cri

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// announcements decides which events of the runtime contain a state of their pod that is as recent as a
// read would be; see [runtime.AllowAnnounced].
//
// Neither the order of events nor their times prove that. containerd reads the state of a pod for each
// event separately, so that the event of an exit may precede one that contains the container as running.
// But containers and sandboxes never return to an earlier state, and only this process creates them. So
// announcements has, for each pod, the objects and the least state of each, according to the last
// inspection, the calls since, and the events since. An event that contains exactly these objects, none in
// an earlier state, includes all of these changes. An object that only an event has contained was created by a call
// without a response, or by another program: then the pod is inspected.
type announcements struct {
	mu   sync.Mutex
	pods map[types.UID]*announcedPod
	ids  map[string]*announcedPod // by ID of a sandbox or container
	last uint64                   // number of changes of all pods
}

// An announcedPod is a pod with an inspection or a call. announcements.mu guards it.
type announcedPod struct {
	uid     types.UID
	objects []announcedObject
	exact   bool   // objects are those of the pod; false after a call that failed or changed something else
	changed uint64 // number of the last call or event

	// unknown are the IDs in events that are not those of objects. An event may precede the response of the call that
	// created its object.
	unknown []string

	// sandbox is the last status of the ready sandbox. An event may contain the sandbox as it
	// was before it had a network.
	sandbox *runtime.SandboxStatus

	// event is the last event that is not known to be outdated, nil once an inspection has begun.
	event *runtimeapi.ContainerEventResponse
}

// maxAnnounced is the size of an event, in bytes, that is kept until the next inspection, and maxUnknown the number of
// unknown objects of a pod. Beyond them the pod is inspected.
const (
	maxAnnounced = 256 << 10
	maxUnknown   = 16
)

// An announcedObject is a sandbox or a container.
type announcedObject struct {
	id      string
	sandbox string // of a container; empty for a sandbox
	least   progress
}

// progress is the state of an object, in the order in which it changes.
type progress uint8

const (
	progressUnknown progress = iota
	progressCreated          // or a sandbox is ready
	progressRunning
	progressExited // or a sandbox is not ready
)

func containerProgress(s runtimeapi.ContainerState) progress {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return progressCreated
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return progressRunning
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return progressExited
	default:
		return progressUnknown
	}
}

func sandboxProgress(s runtimeapi.PodSandboxState) progress {
	switch s {
	case runtimeapi.PodSandboxState_SANDBOX_READY:
		return progressCreated
	case runtimeapi.PodSandboxState_SANDBOX_NOTREADY:
		return progressExited
	default:
		return progressUnknown
	}
}

func newAnnouncements() *announcements {
	return &announcements{pods: map[types.UID]*announcedPod{}, ids: map[string]*announcedPod{}}
}

// created records a call that created an object of a pod, with its error. sandbox is empty for a sandbox.
func (a *announcements) created(uid types.UID, id, sandbox string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pods[uid]
	if p == nil {
		p = &announcedPod{uid: uid, exact: sandbox == ""} // nothing existed: the pod was not listed
		a.pods[uid] = p
	}
	a.changeLocked(p, err)
	if err == nil {
		p.unknown = slices.DeleteFunc(p.unknown, func(other string) bool { return other == id })
		a.addLocked(p, announcedObject{id: id, sandbox: sandbox, least: progressCreated})
	}
}

// addLocked adds an object. If the runtime has returned its ID for another one, the objects of neither pod are exact.
func (a *announcements) addLocked(p *announcedPod, o announcedObject) {
	if other := a.ids[o.id]; other != nil {
		other.exact, p.exact = false, false
		return
	}
	p.objects = append(p.objects, o)
	a.ids[o.id] = p
}

// reached records a call after which an object has a state or a later one. The containers of a stopped
// sandbox have exited.
func (a *announcements) reached(id string, least progress, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.ids[id]
	if p == nil {
		return
	}
	a.changeLocked(p, err)
	for i := range p.objects {
		if o := &p.objects[i]; err == nil && (o.id == id || o.sandbox == id) {
			o.least = max(o.least, least)
		}
	}
}

// removed records a call that removed a container, or a sandbox with its containers.
func (a *announcements) removed(id string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.ids[id]
	if p == nil {
		return
	}
	a.changeLocked(p, err)
	if err != nil {
		return
	}
	p.objects = slices.DeleteFunc(p.objects, func(o announcedObject) bool {
		if o.id != id && o.sandbox != id {
			return false
		}
		delete(a.ids, o.id)
		return true
	})
}

// altered records a call that changed an object in another way: only an inspection returns the result.
func (a *announcements) altered(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.ids[id]; p != nil {
		a.changeLocked(p, nil)
		p.exact = false
	}
}

func (a *announcements) changeLocked(p *announcedPod, err error) {
	a.last++
	p.changed = a.last
	if err != nil {
		p.exact = false // the call may have had an effect, or may still have one
	}
}

// opened records that a stream of events is opened. Events may have been missed.
func (a *announcements) opened() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.pods {
		p.event = nil
	}
}

// received records an event. Nothing is kept of pods without an inspection or call.
func (a *announcements) received(uid types.UID, e *runtimeapi.ContainerEventResponse) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pods[uid]
	if p == nil {
		return
	}
	a.changeLocked(p, nil)
	if e.ContainerEventType == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT {
		p.event = nil // containerd may send it before the object has disappeared
		return
	}
	outdated := false
	for i := range p.objects {
		o := &p.objects[i]
		state, found := progressIn(e, o)
		outdated = outdated || found && state < o.least
		o.least = max(o.least, state)
	}
	p.noteUnknown(e)
	switch {
	case proto.Size(e) > maxAnnounced:
		p.event = nil
	case !outdated:
		p.event = e
	}
}

// noteUnknown adds the unknown objects of an event.
func (p *announcedPod) noteUnknown(e *runtimeapi.ContainerEventResponse) {
	note := func(id string) {
		switch {
		case slices.ContainsFunc(p.objects, func(o announcedObject) bool { return o.id == id }) || slices.Contains(p.unknown, id):
		case len(p.unknown) == maxUnknown:
			p.exact = false
		default:
			p.unknown = append(p.unknown, id)
		}
	}
	if e.PodSandboxStatus != nil {
		note(e.PodSandboxStatus.Id)
	}
	for _, c := range e.ContainersStatuses {
		note(c.GetId())
	}
}

// progressIn returns the state of an object in an event, and whether the event contains it.
func progressIn(e *runtimeapi.ContainerEventResponse, o *announcedObject) (progress, bool) {
	if o.sandbox == "" {
		if s := e.GetPodSandboxStatus(); s.GetId() == o.id {
			return sandboxProgress(s.GetState()), true
		}
		return progressUnknown, false
	}
	for _, c := range e.GetContainersStatuses() {
		if c.GetId() == o.id {
			return containerProgress(c.GetState()), true
		}
	}
	return progressUnknown, false
}

// inspecting returns a value for inspected, and forgets the last event.
func (a *announcements) inspecting(uid types.UID) (changed uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pods[uid]
	if p == nil {
		return 0
	}
	p.event = nil
	return p.changed
}

// inspected records the result of an inspection. If a call or event came during the inspection, it is
// unknown which of them the result includes, and the objects are not exact.
func (a *announcements) inspected(st *runtime.PodStatus, changed uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pods[st.UID]
	if p == nil {
		if len(st.Sandboxes)+len(st.Containers) == 0 {
			return
		}
		p = &announcedPod{uid: st.UID}
		a.pods[st.UID] = p
	}
	if p.changed != changed { // also if the pod was forgotten during the inspection
		p.exact = false
		return
	}
	a.forgetLocked(p)
	if len(st.Sandboxes)+len(st.Containers) == 0 {
		delete(a.pods, st.UID)
		return
	}
	p.objects, p.sandbox, p.exact, p.unknown = make([]announcedObject, 0, len(st.Sandboxes)+len(st.Containers)), nil, true, nil
	for i := range st.Sandboxes {
		s, state := &st.Sandboxes[i], progressUnknown
		switch s.State {
		case runtime.SandboxReady:
			state, p.sandbox = progressCreated, copied(s)
		case runtime.SandboxNotReady:
			state = progressExited
		}
		a.addLocked(p, announcedObject{id: s.ID, least: state})
	}
	for i := range st.Containers {
		c, state := &st.Containers[i], progressUnknown
		switch c.State {
		case runtime.ContainerCreated:
			state = progressCreated
		case runtime.ContainerRunning:
			state = progressRunning
		case runtime.ContainerExited:
			state = progressExited
		}
		a.addLocked(p, announcedObject{id: runtimeID(c.ID), sandbox: c.SandboxID, least: state})
	}
}

// copied returns a copy of the status of a sandbox, whose owner may change it.
func copied(s *runtime.SandboxStatus) *runtime.SandboxStatus {
	out := *s
	out.IPs = slices.Clone(s.IPs)
	return &out
}

// sandboxInspected records the status of a sandbox that was created.
func (a *announcements) sandboxInspected(uid types.UID, s *runtime.SandboxStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.pods[uid]; p != nil && s.State == runtime.SandboxReady {
		p.sandbox = copied(s)
	}
}

// take returns the last event of a pod and the last status of its ready sandbox if the event is as recent
// as an inspection. It returns ok without an event if nothing of the pod exists. Each event is returned
// once: a later inspection without an event has another reason.
func (a *announcements) take(uid types.UID) (e *runtimeapi.ContainerEventResponse, ready *runtime.SandboxStatus, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pods[uid]
	switch {
	case p == nil || !p.exact || len(p.unknown) > 0:
		return nil, nil, false
	case len(p.objects) == 0:
		delete(a.pods, uid)
		return nil, nil, true
	case p.event == nil || len(p.objects) != 1+len(p.event.ContainersStatuses):
		return nil, nil, false
	}
	for i := range p.objects {
		o := &p.objects[i]
		if state, found := progressIn(p.event, o); !found || state == progressUnknown || state < o.least || o.sandbox != "" && o.sandbox != p.event.PodSandboxStatus.GetId() {
			return nil, nil, false
		}
	}
	e, p.event = p.event, nil
	if p.sandbox != nil {
		ready = copied(p.sandbox)
	}
	return e, ready, true
}

// forgetLocked forgets the objects of a pod.
func (a *announcements) forgetLocked(p *announcedPod) {
	for _, o := range p.objects {
		delete(a.ids, o.id)
	}
}

// retain forgets removed pods.
func (a *announcements) retain(keep func(types.UID) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for uid, p := range a.pods {
		if !keep(uid) {
			a.forgetLocked(p)
			delete(a.pods, uid)
		}
	}
}
