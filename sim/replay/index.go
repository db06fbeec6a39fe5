package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/sim/record"
)

// An index has the frames of a recording by use. It is not changed by a replay.
type index struct {
	start      time.Time
	length     time.Duration // of the recording
	begin, end time.Duration // of the agent; end is that of the recording or Options.Until
	calls      []*call
	reads      map[string][]*call // by readKey, in the order of their begins
	succeeded  []time.Duration    // begins of calls that succeeded
	starts     []*call            // of all pods, in the order of their begins
	things     map[string]*thing  // sandboxes and containers by ID
	pulls      map[string]*span   // the first successful pull of each image
	pods       map[types.UID]string
	sources    map[string][]record.Frame // frames with Pods
	events     []record.Frame
	probes     []record.Frame
	operations []record.Frame
	statuses   []record.Frame
	draws      []record.Frame
	drawAt     []int // indexes of their frames
	indexOf    map[*record.Probe]int
	state      []*record.State               // that the agent found
	pauses     []span                        // when the process did not run
	missing    map[types.UID][]time.Duration // when a pod had no cgroup
	specified  map[types.UID]bool            // pods of a source
	stopped    map[string]time.Duration      // times of events, by container or sandbox
	deleted    map[string]time.Duration      // likewise
	hostIPs    []string
	runtime    string // name of the runtime
	probed     bool   // the agent has a prober
	cgroups    bool
	volumes    bool
	only       string // Options.Pod
}

// A thing is a sandbox or a container of the recorded runtime.
type thing struct {
	id, sandbox string // sandbox is empty for a sandbox
	pod         types.UID
	name        string // of the container
	attempt     uint32

	create, start, stop, remove *span         // of the calls that succeeded; nil if there was none
	gone                        time.Duration // when another program had removed it; zero if none did

	running, exited *runtimeapi.ContainerStatus // the first status while it runs and after its exit; nil if there is none
	exit            time.Duration               // of exited
	reported        time.Duration               // when the runtime reported the exit for the first time; zero if it did not

	container []observed[*runtimeapi.Container] // as listed, in the order of their times
	listed    []observed[*runtimeapi.PodSandbox]
}

// An observed value was returned by a call.
type observed[T any] struct {
	at    *call
	value T
}

// A span is the time of a call.
type span struct {
	begin, end time.Duration
	index      int
}

const (
	podUIDLabel        = "io.kubernetes.pod.uid"
	containerNameLabel = "io.kubernetes.container.name"
)

func newIndex(r *Recording, until time.Duration, only string) *index {
	x := &index{
		start: r.Header.Start, length: r.Length, end: r.Length, reads: map[string][]*call{}, things: map[string]*thing{}, pulls: map[string]*span{}, pods: map[types.UID]string{},
		sources: map[string][]record.Frame{}, indexOf: map[*record.Probe]int{}, only: only,
		missing: map[types.UID][]time.Duration{}, specified: map[types.UID]bool{}, stopped: map[string]time.Duration{}, deleted: map[string]time.Duration{},
	}
	if until > 0 {
		x.end = min(x.end, until)
	}
	x.begin = x.end
	constructed := time.Duration(0)
	for i, f := range r.frames {
		if f.Agent != nil {
			constructed = f.At // other components make earlier calls
		}
		x.frame(i, f)
	}
	for _, f := range r.frames {
		if begin := max(0, f.At-took(f)); isAction(f) && begin >= constructed {
			x.begin = min(x.begin, begin)
		}
	}
	x.dropReturned()
	slices.SortStableFunc(x.calls, func(a, b *call) int { return cmp.Compare(a.begin, b.begin) })
	x.inspect()
	for _, c := range x.calls {
		if c.err == nil && !c.hangs {
			x.succeeded = append(x.succeeded, c.begin)
		}
		x.spans(c)
		if isStart[c.method] {
			x.starts = append(x.starts, c)
		}
		if !changes[c.method] {
			key := readKey(c.method, c.request)
			x.reads[key] = append(x.reads[key], c)
		}
	}
	x.lost()
	x.filter(only)
	return x
}

// isAction reports whether a frame is what an agent did or received.
func isAction(f record.Frame) bool {
	return f.Header == nil && f.End == nil && f.Agent == nil && f.State == nil && f.Pause == nil && (f.Pods == nil || !f.Pods.Complete)
}

func (x *index) frame(i int, f record.Frame) {
	switch {
	case f.Pods != nil && !f.Pods.Complete:
		x.sources[f.Pods.Source] = append(x.sources[f.Pods.Source], f)
		for _, pod := range f.Pods.Changed {
			if pod != nil {
				x.specified[pod.UID] = true
				x.pods[pod.UID] = pod.Namespace + "/" + pod.Name
				x.facts(&pod.Status) // an agent that finds everything as it was writes no status
				x.volumes = x.volumes || len(pod.Spec.Volumes) > 0
			}
		}
	case f.Call != nil:
		x.calls = append(x.calls, &call{
			index: i, begin: max(0, f.At-f.Call.Took), end: f.At, hangs: f.Call.Pending,
			method: f.Call.Method, request: f.Call.Request, answer: f.Call.Answer, err: f.Call.Error,
		})
	case f.Event != nil:
		x.events = append(x.events, f)
		var e runtimeapi.ContainerEventResponse
		if decode(f.Event.Message, &e) != nil {
			return
		}
		switch e.ContainerEventType {
		case runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT:
			x.stopped[e.ContainerId] = f.At
		case runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT:
			x.deleted[e.ContainerId] = f.At
		}
	case f.Probe != nil:
		x.probes = append(x.probes, f)
		x.indexOf[f.Probe] = i
		x.probed = true
	case f.Operation != nil && f.Operation.Name == missing:
		x.missing[f.Operation.Pod] = append(x.missing[f.Operation.Pod], f.At)
	case f.State != nil:
		x.state = append(x.state, f.State)
	case f.Pause != nil:
		x.pauses = append(x.pauses, span{f.At - f.Pause.Took, f.At, i})
	case f.Operation != nil:
		x.operations = append(x.operations, f)
		x.cgroups = x.cgroups || f.Operation.Component == "cgroup"
		x.volumes = x.volumes || f.Operation.Component == "volume"
	case f.Status != nil:
		x.statuses = append(x.statuses, f)
		x.facts(f.Status.Status)
	case f.Agent != nil:
		x.probed, x.cgroups = x.probed || f.Agent.Probes, x.cgroups || f.Agent.Cgroups
		for _, source := range f.Agent.Sources {
			x.sources[source] = append(x.sources[source], []record.Frame{}...)
		}
	case f.Draw != nil:
		x.draws, x.drawAt = append(x.draws, f), append(x.drawAt, i)
	}
}

// facts takes the addresses of the node and the name of the runtime from a status.
func (x *index) facts(s *v1.PodStatus) {
	if s == nil {
		return
	}
	if x.hostIPs == nil && s.HostIP != "" {
		x.hostIPs = []string{s.HostIP}
		for _, ip := range s.HostIPs {
			if ip.IP != s.HostIP {
				x.hostIPs = append(x.hostIPs, ip.IP)
			}
		}
	}
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		if name, _, ok := cutID(c.ContainerID); ok && x.runtime == "" {
			x.runtime = name
		}
	}
}

// dropReturned removes the frames of pending calls that returned. The two frames of a call that took as long as the
// recorder waits are in any order.
func (x *index) dropReturned() {
	const precision = time.Second // of the begin of a call
	pending, gone := map[string][]*call{}, map[*call]bool{}
	for _, c := range x.calls {
		if c.hangs {
			key := readKey(c.method, c.request)
			pending[key] = append(pending[key], c)
		}
	}
	if len(pending) == 0 {
		return
	}
	for _, c := range x.calls {
		if c.hangs || c.end-c.begin < precision {
			continue
		}
		for _, p := range pending[readKey(c.method, c.request)] {
			if !gone[p] && (p.begin-c.begin).Abs() < precision {
				gone[p] = true
				break
			}
		}
	}
	x.calls = slices.DeleteFunc(x.calls, func(c *call) bool { return gone[c] })
}

// inspect finds the sandboxes and containers.
func (x *index) inspect() {
	parsed := map[string]bool{} // answers that are repeated
	for _, c := range x.calls {
		if c.err != nil || c.hangs {
			continue
		}
		switch c.method {
		case "RunPodSandbox":
			var answer runtimeapi.RunPodSandboxResponse
			if f := parse(c.request); decode(c.answer, &answer) == nil && f.Config != nil {
				x.thing(answer.PodSandboxId, "", f.Config.Metadata.UID, "", f.Config.Metadata.Attempt)
				x.named(f.Config.Metadata)
			}
		case "CreateContainer":
			var answer runtimeapi.CreateContainerResponse
			if f := parse(c.request); decode(c.answer, &answer) == nil && f.Config != nil && f.SandboxConfig != nil {
				x.thing(answer.ContainerId, f.PodSandboxID, f.SandboxConfig.Metadata.UID, f.Config.Metadata.Name, f.Config.Metadata.Attempt)
			}
		case "ContainerStatus":
			if key := string(c.answer); !parsed[key] {
				parsed[key] = true
				x.status(c)
			}
		case "ListPodSandbox", "ListContainers":
			if key := c.method + string(c.answer); !parsed[key] {
				parsed[key] = true
				x.list(c)
			}
		}
	}
	for id, at := range x.stopped {
		if t := x.things[id]; t != nil {
			t.exitedBy(at)
		}
	}
}

// list adds the items of a list.
func (x *index) list(c *call) {
	if c.method == "ListPodSandbox" {
		var answer runtimeapi.ListPodSandboxResponse
		if decode(c.answer, &answer) != nil {
			return
		}
		for _, s := range answer.Items {
			t := x.thing(s.GetId(), "", s.GetMetadata().GetUid(), "", s.GetMetadata().GetAttempt())
			t.listed = append(t.listed, observed[*runtimeapi.PodSandbox]{c, s})
			x.named(metadata{Name: s.GetMetadata().GetName(), Namespace: s.GetMetadata().GetNamespace(), UID: s.GetMetadata().GetUid()})
		}
		return
	}
	var answer runtimeapi.ListContainersResponse
	if decode(c.answer, &answer) != nil {
		return
	}
	for _, s := range answer.Containers {
		t := x.thing(s.GetId(), s.GetPodSandboxId(), s.GetLabels()[podUIDLabel], s.GetMetadata().GetName(), s.GetMetadata().GetAttempt())
		t.container = append(t.container, observed[*runtimeapi.Container]{c, s})
		if s.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
			t.exitedBy(c.end)
		}
	}
}

// status adds the start or the exit of a container.
func (x *index) status(c *call) {
	var answer runtimeapi.ContainerStatusResponse
	if decode(c.answer, &answer) != nil || answer.Status == nil {
		return
	}
	x.containerStatus(answer.Status)
	if answer.Status.State == runtimeapi.ContainerState_CONTAINER_EXITED {
		x.things[answer.Status.Id].exitedBy(c.end)
	}
}

// exitedBy sets the time at which the runtime has reported the exit of a container. A
// runtime that is overloaded reports it seconds later.
func (t *thing) exitedBy(at time.Duration) {
	if t.reported == 0 || at < t.reported {
		t.reported = at
	}
}

func (x *index) containerStatus(s *runtimeapi.ContainerStatus) {
	t := x.thing(s.GetId(), "", s.GetLabels()[podUIDLabel], s.GetMetadata().GetName(), s.GetMetadata().GetAttempt())
	switch {
	case s.State == runtimeapi.ContainerState_CONTAINER_RUNNING && t.running == nil:
		t.running = s
	case s.State == runtimeapi.ContainerState_CONTAINER_EXITED && t.exited == nil:
		t.exited, t.exit = s, time.Unix(0, s.FinishedAt).Sub(x.start)
	}
}

func (x *index) named(m metadata) {
	if uid := types.UID(m.UID); x.pods[uid] == "" {
		x.pods[uid] = m.Namespace + "/" + m.Name
	}
}

// thing returns the thing with an ID, which it adds if there is none.
func (x *index) thing(id, sandbox, pod, name string, attempt uint32) *thing {
	t := x.things[id]
	if t == nil {
		t = &thing{id: id, sandbox: sandbox, pod: types.UID(pod), name: name, attempt: attempt}
		x.things[id] = t
	}
	return t
}

// spans adds a call that changed a thing.
func (x *index) spans(c *call) {
	if c.err != nil || c.hangs || !changes[c.method] {
		return
	}
	s := &span{c.begin, c.end, c.index}
	if f := parse(c.request); c.method == "PullImage" && f.Image != nil {
		x.pulls[f.Image.Image] = first(x.pulls[f.Image.Image], s)
	}
	for _, t := range x.changed(c.method, c.request, c.answer) {
		switch c.method {
		case "RunPodSandbox", "CreateContainer":
			t.create = first(t.create, s)
		case "StartContainer":
			t.start = first(t.start, s)
		case "StopContainer", "StopPodSandbox":
			t.stop = first(t.stop, s)
		case "RemoveContainer", "RemovePodSandbox":
			if at, ok := x.deleted[t.id]; ok && at < c.begin && t.remove == nil {
				t.gone = at
				continue
			}
			t.remove = first(t.remove, s)
		}
	}
}

func first(a, b *span) *span {
	if a != nil {
		return a
	}
	return b
}

// changed returns the things that a call is for: the new one, or those that exist.
func (x *index) changed(method string, request, answer []byte) (out []*thing) {
	f := parse(request)
	id := f.ContainerID
	switch method {
	case "RunPodSandbox", "CreateContainer":
		f := parse(answer)
		id = f.ContainerID + f.PodSandboxID // one is empty
	case "StopPodSandbox", "RemovePodSandbox":
		id = f.PodSandboxID
		for _, key := range slices.Sorted(maps.Keys(x.things)) {
			if t := x.things[key]; t.sandbox == id && id != "" {
				out = append(out, t)
			}
		}
	}
	if t := x.things[id]; t != nil {
		out = append(out, t)
	}
	return out
}

// readKey identifies equal requests. Annotations of an image have the time at which the pod was received.
func readKey(method string, request []byte) string {
	key := canonical(request)
	if method == "ImageStatus" {
		if f := parse(request); f.Image != nil {
			key = f.Image.Image
		}
	}
	if key == "" {
		key = "{}"
	}
	return method + key
}

// podOf returns the pod of a request; empty if it has none.
func (x *index) podOf(f fields) types.UID {
	switch {
	case f.SandboxConfig != nil && f.SandboxConfig.Metadata.UID != "":
		return types.UID(f.SandboxConfig.Metadata.UID)
	case f.Config != nil && f.Config.Metadata.UID != "":
		return types.UID(f.Config.Metadata.UID)
	}
	if t := x.things[f.ContainerID]; t != nil && f.ContainerID != "" {
		return t.pod
	}
	if t := x.things[f.PodSandboxID]; t != nil && f.PodSandboxID != "" {
		return t.pod
	}
	return ""
}

// check returns an error if the only pod to replay is unknown.
func (x *index) check() error {
	for _, name := range x.pods {
		if name == x.only {
			return nil
		}
	}
	if x.only == "" {
		return nil
	}
	return fmt.Errorf("pod %q is not in the recording", x.only)
}

// reachable reports whether a call that was made after a time, and not after now, has succeeded.
func (x *index) reachable(after, now time.Duration) bool {
	i, _ := slices.BinarySearchFunc(x.succeeded, after, func(begin, after time.Duration) int { return cmp.Compare(begin, after) })
	return i < len(x.succeeded) && x.succeeded[i] <= now
}

// filter removes the pods other than only, a name "namespace/name"; empty means no filter.
func (x *index) filter(only string) {
	if only == "" {
		return
	}
	keep := func(uid types.UID) bool { return x.pods[uid] == only }
	for name, frames := range x.sources {
		out := make([]record.Frame, 0, len(frames))
		for _, f := range frames {
			p := *f.Pods
			p.Changed = slices.DeleteFunc(slices.Clone(p.Changed), func(pod *v1.Pod) bool { return pod == nil || !keep(pod.UID) })
			f.Pods = &p
			out = append(out, f)
		}
		x.sources[name] = out
	}
	x.calls = slices.DeleteFunc(x.calls, func(c *call) bool {
		uid := x.podOf(parse(c.request))
		return changes[c.method] && uid != "" && !keep(uid)
	})
	x.probes = slices.DeleteFunc(x.probes, func(f record.Frame) bool { return !keep(f.Probe.Pod) })
	x.statuses = slices.DeleteFunc(x.statuses, func(f record.Frame) bool { return !keep(f.Status.UID) })
	x.operations = slices.DeleteFunc(x.operations, func(f record.Frame) bool { return f.Operation.Pod != "" && !keep(f.Operation.Pod) })
	for _, t := range x.things {
		if !keep(t.pod) {
			delete(x.things, t.id)
		}
	}
}
