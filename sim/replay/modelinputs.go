package replay

import (
	"context"
	"reflect"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/record"
)

// A modelSource is a source of a checked replay. It delivers the recorded sets, as the API would
// after the writes of the replayed agent: with its statuses, and without a pod that it has deleted.
type modelSource struct {
	m    *model
	name string
	set  []*v1.Pod
	wake chan struct{} // has capacity 1

	synced bool // it has delivered a set
}

func (m *model) source(name string, frames []record.Frame) podsource.PodSource {
	return podsource.Func(func(ctx context.Context, set func([]*v1.Pod)) error {
		s := &modelSource{m: m, name: name, wake: make(chan struct{}, 1)}
		m.w.mu.Lock()
		m.sources = append(m.sources, s)
		m.w.mu.Unlock()
		for {
			wait := time.Duration(1<<63 - 1)
			if len(frames) > 0 && frames[0].At <= m.w.x.end {
				wait = m.w.delay("source "+name, frames[0].At)
			}
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
				m.w.mu.Lock()
				s.deliver(frames[0].Pods)
				s.synced = true
				frames = frames[1:]
			case <-s.wake:
				m.w.mu.Lock()
			case <-ctx.Done():
				timer.Stop()
				return nil
			}
			timer.Stop()
			pods := slices.Clone(s.set)
			m.w.mu.Unlock()
			set(pods)
		}
	})
}

// deliver applies a recorded difference. The caller holds mu.
func (s *modelSource) deliver(p *record.Pods) {
	now, next := s.m.w.now(), *p
	next.Removed = slices.DeleteFunc(slices.Clone(p.Removed), func(uid types.UID) bool {
		return !s.m.pod(uid).deleted && s.m.w.x.deletedByAgent(uid, now)
	})
	next.Changed = slices.DeleteFunc(slices.Clone(p.Changed), func(pod *v1.Pod) bool { return pod == nil || s.m.pod(pod.UID).deleted })
	before := map[types.UID]*v1.Pod{}
	for _, pod := range s.set {
		before[pod.UID] = pod
	}
	s.set = apply(s.set, &next)
	after := map[types.UID]bool{}
	for _, pod := range s.set {
		after[pod.UID] = true
		if old := before[pod.UID]; old != pod {
			s.changed(old, pod)
		}
	}
	for _, uid := range next.Removed {
		if old := before[uid]; old != nil && !after[uid] {
			s.m.note(sim.Entry{Kind: sim.PodRemoved, UID: uid, Object: old})
		}
	}
}

// static reports whether the pods of a source are static. A recording does not contain it: they are
// unless the source is the API server, as in a kubelet.
func static(source string) bool { return source != podsource.APISource }

// changed completes a new version of a pod, a copy, and reports the change.
func (s *modelSource) changed(old, pod *v1.Pod) {
	p := s.m.pod(pod.UID)
	s.m.w.name(pod.UID, pod.Namespace, pod.Name)
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	}
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	}
	static := static(s.name)
	e := sim.Entry{UID: pod.UID, Object: pod, Static: static}
	switch {
	case old == nil:
		p.incarnations++
		p.grace, p.written = nil, nil
		e.Kind = sim.PodAdded
	case old.DeletionTimestamp == nil && pod.DeletionTimestamp != nil:
		e.Kind = sim.DeletionRequested
	case !reflect.DeepEqual(old.Spec, pod.Spec):
		e.Kind = sim.PodChanged
	}
	switch {
	case p.written != nil:
		pod.Status = *p.written.DeepCopy()
	case old != nil && !static:
		pod.Status = *old.Status.DeepCopy()
	}
	if g := pod.DeletionGracePeriodSeconds; pod.DeletionTimestamp != nil && g != nil && (p.grace == nil || *g < *p.grace) {
		p.grace = g
	}
	sim.SetIncarnation(pod, p.incarnations)
	p.last = pod
	if e.Kind != "" {
		s.m.note(e)
	}
	if old == nil && pod.Status.Phase != "" {
		s.m.addEarlierStatus(pod)
	}
}

// addEarlierStatus reports the status that a pod had when it was added, with the instances of containers
// in it that do not exist anymore. The replayed agent is not responsible for them. The caller holds mu.
func (m *model) addEarlierStatus(pod *v1.Pod) {
	m.began = false
	defer func() { m.began = true }()
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, end := range []*v1.ContainerStateTerminated{c.LastTerminationState.Terminated, c.State.Terminated} {
			if end == nil || end.ContainerID == "" {
				continue
			}
			if _, id, _ := cutID(end.ContainerID); m.items[id] != nil {
				continue
			}
			was := runtime.ContainerStatus{
				ID: end.ContainerID, Name: c.Name, State: runtime.ContainerExited, RestartCount: c.RestartCount, Image: c.Image,
				StartedAt: end.StartedAt.Time, FinishedAt: end.FinishedAt.Time, ExitCode: end.ExitCode, Reason: end.Reason,
			}
			m.note(sim.Entry{Kind: sim.Exited, UID: pod.UID, Container: &was})
			m.note(sim.Entry{Kind: sim.Removed, UID: pod.UID, Container: &was})
		}
	}
	m.note(sim.Entry{Kind: sim.StatusUpdated, UID: pod.UID, Object: pod, Status: pod.Status.DeepCopy()})
}

// deletedByAgent reports whether the recorded agent deleted a pod from the API before a time.
func (x *index) deletedByAgent(uid types.UID, before time.Duration) bool {
	return slices.ContainsFunc(x.statuses, func(f record.Frame) bool {
		return f.Status.UID == uid && f.Status.Status == nil && f.Status.Error == nil && f.At-f.Status.Took <= before
	})
}

// write is a call of the sink: UpdatePodStatus, or DeletePod without a status.
func (m *model) write(ctx context.Context, pod *v1.Pod, written *v1.PodStatus) error {
	if m.w.pace(ctx, "status "+string(pod.UID)) != nil {
		return ctx.Err()
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.w.name(pod.UID, pod.Namespace, pod.Name)
	method := "UpdatePodStatus"
	if written == nil {
		method = "DeletePod"
	}
	if err := m.writeError(pod.UID, written == nil); err != nil {
		m.note(sim.Entry{Kind: sim.Called, Agent: 1, UID: pod.UID, Call: method, Err: err.Error()})
		m.note(sim.Entry{Kind: sim.StepTaken, Step: &sim.Step{At: m.w.now(), Do: sim.Fault, Calls: method, Kind: sim.Error, Percent: 100}})
		return err
	}
	if written != nil {
		m.pod(pod.UID).written = written.DeepCopy()
		m.note(sim.Entry{Kind: sim.StatusUpdated, Agent: 1, UID: pod.UID, Object: pod, Status: written.DeepCopy()})
		return nil
	}
	m.note(sim.Entry{Kind: sim.DeletePodCalled, Agent: 1, UID: pod.UID, Object: pod})
	for _, s := range m.sources {
		i := slices.IndexFunc(s.set, func(p *v1.Pod) bool { return p.UID == pod.UID })
		if i < 0 || static(s.name) {
			continue
		}
		m.pod(pod.UID).deleted = true
		m.note(sim.Entry{Kind: sim.PodRemoved, UID: pod.UID, Object: s.set[i]})
		s.set = slices.Delete(slices.Clone(s.set), i, i+1)
		select {
		case s.wake <- struct{}{}:
		default: // the source is to deliver its set already
		}
	}
	return nil
}

// writeError returns the error of the recorded write of a pod that is nearest, if that is within the tolerance.
func (m *model) writeError(uid types.UID, deletes bool) error {
	now := m.w.now()
	var best *record.Frame
	for i := range m.w.x.statuses {
		f := &m.w.x.statuses[i]
		if f.Status.UID == uid && (f.Status.Status == nil) == deletes && (best == nil || (f.At-now).Abs() < (best.At-now).Abs()) {
			best = f
		}
	}
	if best == nil || now > m.w.x.end || (best.At-now).Abs() > m.w.tolerance {
		return nil
	}
	return newError(best.Status.Error)
}

// least is the least duration of a probe, so that its result is not at the instant of other events.
const least = 5 * time.Millisecond

// probe is one try of a probe: it has the outcome of the last recorded one, and succeeds if there is none.
func (m *model) probe(ctx context.Context, t prober.Target) (prober.Outcome, error) {
	key := probeLane(t.Pod.UID, t.Container.Name, t.Kind.String())
	if m.w.pace(ctx, string(key.pod)+key.kind) != nil {
		return prober.Outcome{}, ctx.Err()
	}
	last := m.lastProbe(t)
	took := least
	if last != nil {
		took = max(took, last.Took)
	}
	if m.w.sleep(ctx, took) != nil {
		return prober.Outcome{}, ctx.Err()
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	out := prober.Outcome{Result: runtime.ProbeSuccess}
	var err error
	if last != nil {
		out.Output, out.Detail, out.Warning, err = last.Output, last.Detail, last.Warning, newError(last.Error)
		if last.Result == runtime.ProbeFailure.String() {
			out.Result = runtime.ProbeFailure
		}
	}
	if err == nil {
		m.note(sim.Entry{Kind: sim.Probed, Agent: 1, UID: t.Pod.UID, Object: t.Pod, Probe: &sim.ProbeRun{
			Container: t.Container.Name, ContainerID: t.ContainerID, Kind: t.Kind, Success: out.Result == runtime.ProbeSuccess,
		}})
	}
	return out, err
}

// lastProbe returns the recorded try of a probe that is due or was the last one; nil if there is none.
func (m *model) lastProbe(t prober.Target) (last *record.Probe) {
	now := m.w.now()
	for _, f := range m.w.x.probes {
		p := f.Probe
		if p.Pod == t.Pod.UID && p.Container == t.Container.Name && p.Kind == t.Kind.String() && f.At-p.Took <= now+m.w.tolerance/2 {
			last = p
		}
	}
	return last
}

// deliver is GetContainerEvents: events follow from what happens in the model. A stream ends when the recorded one did.
func (m *model) deliver(ctx context.Context, out chan *runtimeapi.ContainerEventResponse) error {
	m.w.mu.Lock()
	c, extra := m.w.read("GetContainerEvents{}")
	if len(m.w.x.events) == 0 {
		m.w.mu.Unlock()
		return status.Error(codes.Unimplemented, "replay: no events were recorded")
	}
	if m.eventAdded == nil {
		m.eventAdded = make(chan struct{})
	}
	next := len(m.events)
	m.w.mu.Unlock()
	var ends <-chan time.Time
	if c != nil && !extra && !c.hangs && c.end > m.w.now() && c.end < m.w.x.end {
		timer := time.NewTimer(c.end - m.w.now())
		defer timer.Stop()
		ends = timer.C
	}
	for {
		m.w.mu.Lock()
		var e *runtimeapi.ContainerEventResponse
		if next < len(m.events) {
			e = m.events[next]
			next++
		}
		added := m.eventAdded
		m.w.mu.Unlock()
		if e == nil {
			select {
			case <-added:
			case <-ends:
				return newError(c.err)
			case <-ctx.Done():
				return contextError(ctx)
			}
			continue
		}
		if err := m.w.sleep(ctx, m.w.delay("event "+e.ContainerId, m.w.now()+afterCalls)); err != nil {
			return err
		}
		select {
		case out <- e:
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

// adjust makes an agent report its events and its calls of SyncPod and KillPod.
func (m *model) adjust(c *agent.Config) {
	c.Adjust = append(c.Adjust,
		compose.Adjust(func(p *pleg.Config) { p.Handle = m.observeEvents(p.Handle) }),
		compose.Adjust(func(p *pipeline.Config) { p.Runtime = checkedRuntime{p.Runtime, m} }),
	)
}

// observeEvents returns a handler of pleg that reports events.
func (m *model) observeEvents(next func(pleg.Event)) func(pleg.Event) {
	return func(e pleg.Event) {
		m.w.mu.Lock()
		m.note(sim.Entry{Kind: sim.EventReceived, Agent: 1, UID: e.UID, Event: &e})
		m.w.mu.Unlock()
		if next != nil {
			next(e)
		}
	}
}

// A checkedRuntime reports the calls of SyncPod and KillPod.
type checkedRuntime struct {
	runtime.Runtime
	m *model
}

// Unwrap gives access to the optional interfaces of the runtime.
func (r checkedRuntime) Unwrap() any { return r.Runtime }

func (r checkedRuntime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	if req.Pod != nil {
		r.m.w.mu.Lock()
		r.m.note(sim.Entry{Kind: sim.SyncPodCalled, Agent: 1, UID: req.Pod.UID, Object: req.Pod})
		r.m.w.mu.Unlock()
	}
	return r.Runtime.SyncPod(ctx, req)
}

func (r checkedRuntime) KillPod(ctx context.Context, req runtime.KillRequest) error {
	r.m.w.mu.Lock()
	r.m.note(sim.Entry{Kind: sim.KillPodCalled, Agent: 1, UID: req.UID, Object: req.Pod, Grace: req.GracePeriodSeconds})
	r.m.w.mu.Unlock()
	return r.Runtime.KillPod(ctx, req)
}
