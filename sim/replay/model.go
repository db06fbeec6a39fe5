package replay

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/sim"
)

// A model is the world of a replay whose agent is checked by invariants, not compared with
// the recorded one. It is a runtime that is consistent for any actions of the agent, also
// after these differ from the recorded ones. From the recording it takes what agents do not
// cause: the exits of containers, errors and durations of calls, images, outcomes of probes.
//
// It reports what happens as entries of package sim, whose invariants are evaluated.
type model struct {
	w       *world
	checker *sim.Checker
	grace   bool // graceInvariant is evaluated
	foreign bool // the recording is of another program, which reads at other times

	// Guarded by w.mu.
	items      map[string]*item // by ID
	recorded   map[string][]*call
	pods       map[types.UID]*podModel
	used       map[string]bool // IDs of recorded things that were created
	decisions  map[string]decision
	images     map[string]bool // pulled: true, removed: false
	sources    []*modelSource
	events     []*runtimeapi.ContainerEventResponse
	eventAdded chan struct{} // closed when an event is added; nil: there is no stream
	created    int
	trace      []sim.Entry
	violations []sim.Violation
	began      bool // the agent is responsible for what happens
}

// A podModel is a pod as its source and the API know it.
type podModel struct {
	incarnations int
	last         *v1.Pod // in its source; the last one after its removal
	written      *v1.PodStatus
	deleted      bool   // from the API, by the replayed agent
	grace        *int64 // the shortest of a deletion
}

// An item is a sandbox or a container of the model.
type item struct {
	*thing
	box        *runtimeapi.PodSandbox // of a sandbox
	container  *runtimeapi.Container  // of a container
	network    *runtimeapi.NamespaceOption
	status     runtime.ContainerStatus // of a container
	ready      bool                    // of a sandbox
	created    time.Time
	message    string
	logPath    string
	exit       *time.Timer
	exitAt     time.Duration // of exit
	stops      int           // calls of StopContainer
	terminated chan struct{} // closed at the exit of the container
}

func newModel(w *world, invariants []string) *model {
	m := &model{
		w: w, items: map[string]*item{}, recorded: map[string][]*call{}, pods: map[types.UID]*podModel{}, used: map[string]bool{}, decisions: map[string]decision{}, images: map[string]bool{},
		grace: slices.Contains(invariants, graceInvariant),
	}
	var list []sim.Invariant
	for _, inv := range sim.Invariants() {
		if slices.Contains(invariants, inv.Name) {
			list = append(list, inv)
		}
	}
	for _, c := range w.x.calls {
		if changes[c.method] {
			key := m.action(c.method, parse(c.request))
			m.recorded[key] = append(m.recorded[key], c)
		}
	}
	w.x.eventFacts()
	earlier := w.x.earlier()
	m.checker = sim.NewChecker(list, len(earlier) == 0, false)
	for _, t := range earlier {
		m.addEarlier(t)
	}
	m.violations, m.began = nil, true // the recorded agent is not checked
	return m
}

// action identifies equal changing calls. Requests of a recording and of the replay may
// have different IDs for equal things.
func (m *model) action(method string, f fields) string {
	id := f.ContainerID + f.PodSandboxID
	switch t := m.w.x.things[id]; {
	case (method == "PullImage" || method == "RemoveImage") && f.Image != nil:
		return method + " " + f.Image.Image
	case (method == "RunPodSandbox" || method == "CreateContainer") && f.Config != nil:
		return fmt.Sprintf("%s %s %s %d", method, m.w.x.podOf(f), containerName(method, f), f.Config.Metadata.Attempt)
	case m.items[id] != nil:
		t := m.items[id]
		return fmt.Sprintf("%s %s %s %d", method, t.pod, t.name, t.attempt)
	case t != nil && id != "":
		return fmt.Sprintf("%s %s %s %d", method, t.pod, t.name, t.attempt)
	}
	return method + " " + id
}

// containerName returns the name of the container that a call creates; empty for a sandbox.
func containerName(method string, f fields) string {
	if method == "RunPodSandbox" {
		return ""
	}
	return f.Config.Metadata.Name
}

// runtimeName returns the name of the runtime, the prefix of IDs in statuses.
func (w *world) runtimeName() string { return cmp.Or(w.x.runtime, "replay") }

// note adds an entry, and evaluates the invariants. The caller holds mu.
func (m *model) note(e sim.Entry) {
	e.At = m.w.now()
	if name := m.w.outputs.pods[e.UID]; e.UID != "" {
		e.Pod = cmp.Or(e.Pod, name)
	}
	m.trace = append(m.trace, e)
	m.add(m.checker.Add(e, time.Now())...)
}

// add adds violations.
func (m *model) add(found ...sim.Violation) {
	for _, v := range found {
		if m.began {
			m.violations = append(m.violations, v)
			m.trace = append(m.trace, sim.Entry{At: v.At, Kind: sim.InvariantViolated, UID: v.UID, Pod: m.w.outputs.pods[v.UID], Violation: &v})
		}
	}
}

// pod returns the podModel of a UID. The caller holds mu.
func (m *model) pod(uid types.UID) *podModel {
	p := m.pods[uid]
	if p == nil {
		p = &podModel{}
		m.pods[uid] = p
	}
	return p
}

// agentStarted is called at the start of the agent. m may be nil.
func (m *model) agentStarted() {
	if m == nil {
		return
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.note(sim.Entry{Kind: sim.AgentStarted, Agent: 1})
}

// settle ends the run: unless it was ended by an error, the invariants of the final state are evaluated. m may be nil.
func (m *model) settle(err error) {
	if m == nil || err != nil {
		return
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	uids := map[types.UID]bool{}
	for uid := range m.pods {
		uids[uid] = true
	}
	if !slices.ContainsFunc(m.sources, func(s *modelSource) bool { return !s.synced }) { // else nothing is an orphan
		for _, t := range m.items {
			uids[t.pod] = true
		}
	}
	delete(uids, "")
	for _, uid := range slices.Sorted(maps.Keys(uids)) {
		m.note(sim.Entry{Kind: sim.PodSettled, UID: uid})
	}
	m.note(sim.Entry{Kind: sim.RunEnded})
}

// digest returns a hash of what the agent did in each pod, without the times.
func (m *model) digest() string {
	h := sha256.New()
	lines := map[types.UID][]string{}
	for _, e := range m.trace {
		if e.Kind == sim.SyncPodCalled {
			continue // whether two causes have one sync depends on the Go scheduler
		}
		e.At = 0
		lines[e.UID] = append(lines[e.UID], e.String())
	}
	for _, uid := range slices.Sorted(maps.Keys(lines)) {
		_, _ = io.WriteString(h, strings.Join(lines[uid], "\n")+"\n")
	}
	return hex.EncodeToString(h.Sum(nil))
}

// containerChanged reports the state of a container. The caller holds mu.
func (m *model) containerChanged(t *item, kind sim.EntryKind, stopped bool) {
	status := t.status
	m.note(sim.Entry{Kind: kind, UID: t.pod, Container: &status, Stopped: stopped})
	switch kind {
	case sim.Created:
		m.emit(t, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	case sim.Started:
		m.emit(t, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	case sim.Exited:
		m.emit(t, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	case sim.Removed:
		m.emit(t, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	}
}

// sandboxChanged reports the state of a sandbox. The caller holds mu.
func (m *model) sandboxChanged(t *item, kind sim.EntryKind) {
	state := runtime.SandboxNotReady
	if t.ready {
		state = runtime.SandboxReady
	}
	m.note(sim.Entry{Kind: kind, UID: t.pod, Sandbox: &runtime.SandboxStatus{ID: t.id, State: state, Attempt: t.attempt, CreatedAt: t.created}})
	switch kind {
	case sim.SandboxReady:
		m.emit(t, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	case sim.SandboxStopped:
		m.emit(t, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	case sim.SandboxRemoved:
		m.emit(t, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	}
}

// exited makes a running container exit. The caller holds mu.
func (m *model) exited(t *item, code int32, reason, message string, stopped bool) {
	if t.status.State != runtime.ContainerRunning {
		return
	}
	if t.exit != nil {
		t.exit.Stop()
	}
	if reason == "" {
		reason = "Error"
		if code == 0 {
			reason = "Completed"
		}
	}
	t.status.State, t.status.FinishedAt, t.status.ExitCode, t.status.Reason, t.message = runtime.ContainerExited, time.Now(), code, reason, message
	close(t.terminated)
	m.containerChanged(t, sim.Exited, stopped)
}

// exitLater schedules the exit of a running container, unless an earlier one is scheduled. The caller holds mu.
func (m *model) exitLater(t *item, at time.Duration, code int32, reason, message string, stopped bool) {
	if t.exit != nil {
		if at >= t.exitAt {
			return
		}
		t.exit.Stop()
	}
	t.exitAt = at
	t.exit = time.AfterFunc(m.w.delayLocked("exit "+t.id, at), func() {
		m.w.mu.Lock()
		defer m.w.mu.Unlock()
		m.exited(t, code, reason, message, stopped)
	})
}

// sandboxDies stops a sandbox and its containers. The caller holds mu.
func (m *model) sandboxDies(t *item, stopped bool) {
	for _, id := range slices.Sorted(maps.Keys(m.items)) {
		if c := m.items[id]; c.sandbox == t.id && c.name != "" {
			m.exited(c, 137, "", "", stopped)
		}
	}
	if t.ready {
		t.ready = false
		m.sandboxChanged(t, sim.SandboxStopped)
	}
}
