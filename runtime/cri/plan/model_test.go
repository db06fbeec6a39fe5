package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// epoch is the time 0 of every model.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A model is a pod with its status in the runtime, and is itself a runtime that
// executes plans. It is written as text, one item per line, sandboxes and instances
// in order of creation:
//
//	pod OnFailure hostnetwork deleted
//	init setup policy=Always image=nginx:1 rule=Restart:In:3,4
//	container web startup liveness=15 cpu=100m/200m memory=64Mi/128Mi onresize=memory
//	ephemeral debug
//	restore /checkpoint
//	sandbox s0 attempt=0 notready noip hostnetwork
//	has web#0 in=s0 exited=1 reason=OOMKilled made=nginx:0 ran=10..20 id=x nohash unstarted
//	has web#1 running live started cpu=50m/200m memory=64Mi/128Mi
//	probed
//
// A probe may have a grace period of its own; amounts are request/limit, either of
// which may be missing. Probe results are live, dead, started and stuck; with one of
// them, or with probed, there is a prober.
//
// By default, an instance is in the last named sandbox and was created from the
// present spec. Times are seconds after the epoch.
type model struct {
	pod     *v1.Pod
	status  *runtime.PodStatus
	probes  *runtime.ProbeResults
	counts  map[string]int32
	ended   map[string]*runtime.ContainerStatus
	ignore  bool
	restore string // the checkpoint of which the restore is not complete
	backoff *plan.Backoff
	now     time.Time
	clean   bool            // instances exit with 0 when they are stopped, else with 137
	created int             // IDs given out
	passed  map[string]bool // containers that have started up, by name and sandbox

	restored []string // IDs of sandboxes
}

func newModel(t testing.TB, text string) *model {
	t.Helper()
	s := &model{
		pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "u1"},
			Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyAlways},
		},
		status: &runtime.PodStatus{UID: "u1", Name: "shop", Namespace: "default"},
		now:    epoch,
	}
	s.forget(t)
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			require.NoError(t, s.add(words), line)
		}
	}
	return s
}

// forget empties the back-off table, as a restart of the agent does.
func (s *model) forget(t testing.TB) {
	t.Helper()
	var err error
	s.backoff, err = plan.NewBackoff(plan.BackoffConfig{})
	require.NoError(t, err)
}

// add parses one line of a model.
func (s *model) add(words []string) error {
	opts := make(map[string]string)
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		opts[k] = v
	}
	has := func(opt string) bool { _, ok := opts[opt]; return ok }
	switch words[0] {
	case "pod":
		for w := range opts {
			switch w {
			case "hostnetwork":
				s.pod.Spec.HostNetwork = true
			case "deleted":
				s.pod.DeletionTimestamp = new(metav1.NewTime(epoch))
			default:
				s.pod.Spec.RestartPolicy = v1.RestartPolicy(w)
			}
		}
	case "init":
		s.pod.Spec.InitContainers = append(s.pod.Spec.InitContainers, modelContainer(words[1], opts))
	case "container":
		s.pod.Spec.Containers = append(s.pod.Spec.Containers, modelContainer(words[1], opts))
	case "ephemeral":
		s.pod.Spec.EphemeralContainers = append(s.pod.Spec.EphemeralContainers, v1.EphemeralContainer{
			EphemeralContainerCommon: v1.EphemeralContainerCommon(modelContainer(words[1], opts)),
		})
	case "sandbox":
		attempt, _ := strconv.Atoi(opts["attempt"])
		sb := runtime.SandboxStatus{
			ID: words[1], State: runtime.SandboxReady, Attempt: uint32(attempt), CreatedAt: s.now,
			HostNetwork: has("hostnetwork"), NetworkReported: true,
		}
		if has("notready") {
			sb.State = runtime.SandboxNotReady
		} else if has("unknown") {
			sb.State = runtime.SandboxUnknown
		}
		if !has("noip") && !sb.HostNetwork {
			sb.IPs = []string{"10.0.0.1"}
		}
		s.status.Sandboxes = slices.Insert(s.status.Sandboxes, 0, sb)
	case "probed":
		s.probed()
	case "restore":
		s.restore = words[1]
	case "record":
		// restart counts of removed containers
		s.counts = make(map[string]int32)
		for k, v := range opts {
			n, _ := strconv.Atoi(v)
			s.counts[k] = int32(n)
		}
	case "has":
		return s.addInstance(words[1], opts)
	default:
		return fmt.Errorf("unknown word %q", words[0])
	}
	return nil
}

func modelContainer(name string, opts map[string]string) v1.Container {
	c := v1.Container{Name: name, Image: "nginx:1"}
	if image, ok := opts["image"]; ok {
		c.Image = image
	}
	if p, ok := opts["policy"]; ok {
		c.RestartPolicy = new(v1.ContainerRestartPolicy(p))
	}
	c.LivenessProbe, c.StartupProbe = modelProbe(opts, "liveness"), modelProbe(opts, "startup")
	if r := modelResources(opts); r != nil {
		c.Resources = *r
	}
	if names, ok := opts["onresize"]; ok {
		for name := range strings.SplitSeq(names, ",") {
			c.ResizePolicy = append(c.ResizePolicy, v1.ContainerResizePolicy{
				ResourceName: v1.ResourceName(name), RestartPolicy: v1.RestartContainer,
			})
		}
	}
	if r, ok := opts["rule"]; ok {
		parts := strings.Split(r, ":")
		rule := v1.ContainerRestartRule{
			Action:    v1.ContainerRestartRuleAction(parts[0]),
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOperator(parts[1])},
		}
		for code := range strings.SplitSeq(parts[2], ",") {
			n, _ := strconv.Atoi(code)
			rule.ExitCodes.Values = append(rule.ExitCodes.Values, int32(n))
		}
		c.RestartPolicyRules = append(c.RestartPolicyRules, rule)
	}
	return c
}

// modelProbe returns the probe that opts specify, or nil. It is never run.
func modelProbe(opts map[string]string, which string) *v1.Probe {
	grace, ok := opts[which]
	if !ok {
		return nil
	}
	p := new(v1.Probe)
	if n, err := strconv.ParseInt(grace, 10, 64); err == nil {
		p.TerminationGracePeriodSeconds = &n
	}
	return p
}

// modelResources returns the amounts in opts, or nil if there are none.
func modelResources(opts map[string]string) *v1.ResourceRequirements {
	var r *v1.ResourceRequirements
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		text, ok := opts[string(name)]
		if !ok {
			continue
		}
		if r == nil {
			r = &v1.ResourceRequirements{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}
		}
		request, limit, _ := strings.Cut(text, "/")
		if request != "" {
			r.Requests[name] = resource.MustParse(request)
		}
		if limit != "" {
			r.Limits[name] = resource.MustParse(limit)
		}
	}
	return r
}

// probed returns the probe results, and creates them if there are none.
func (s *model) probed() *runtime.ProbeResults {
	if s.probes == nil {
		s.probes = &runtime.ProbeResults{Liveness: map[string]runtime.ProbeResult{}, Startup: map[string]runtime.ProbeResult{}}
	}
	return s.probes
}

// result stores the probe result of an instance.
func (s *model) result(id, word string) error {
	switch word {
	case "live":
		s.probed().Liveness[id] = runtime.ProbeSuccess
	case "dead":
		s.probed().Liveness[id] = runtime.ProbeFailure
	case "started":
		s.probed().Startup[id] = runtime.ProbeSuccess
	case "stuck":
		s.probed().Startup[id] = runtime.ProbeFailure
	default:
		return fmt.Errorf("unknown result %q", word)
	}
	return nil
}

func (s *model) addInstance(name string, opts map[string]string) error {
	name, attempt, ok := strings.Cut(name, "#")
	n, err := strconv.Atoi(attempt)
	if !ok || err != nil {
		return fmt.Errorf("want name#attempt, have %q", name)
	}
	c := s.spec(name)
	if c == nil {
		return fmt.Errorf("the pod has no container %q", name)
	}
	inst := runtime.ContainerStatus{
		ID: fmt.Sprintf("%s-%d", name, n), Name: name, RestartCount: int32(n), Hash: plan.Hash(c), CreatedAt: s.now, StartedAt: s.now,
	}
	if len(s.status.Sandboxes) > 0 {
		inst.SandboxID = s.status.Sandboxes[0].ID
	}
	inst.Resources = modelResources(opts)
	if id, ok := opts["id"]; ok {
		inst.ID = id
	}
	for k, v := range opts {
		switch k {
		case "in":
			inst.SandboxID = v
		case "cpu", "memory", "id":
		case "live", "dead", "started", "stuck":
			if err := s.result(inst.ID, k); err != nil {
				return err
			}
		case "created":
			inst.State, inst.StartedAt = runtime.ContainerCreated, time.Time{}
		case "running":
			inst.State = runtime.ContainerRunning
		case "unknown":
			inst.State = runtime.ContainerUnknown
		case "exited":
			code, _ := strconv.Atoi(v)
			inst.State, inst.ExitCode = runtime.ContainerExited, int32(code)
		case "reason":
			inst.Reason = v
		case "made":
			inst.Hash = plan.Hash(&v1.Container{Name: name, Image: v})
		case "nohash":
			inst.Hash = 0
		case "unstarted":
			inst.StartedAt = time.Time{}
		case "ran":
			var from, to int
			if _, err := fmt.Sscanf(v, "%d..%d", &from, &to); err != nil {
				return err
			}
			inst.CreatedAt = epoch.Add(time.Duration(from) * time.Second)
			inst.StartedAt, inst.FinishedAt = inst.CreatedAt, epoch.Add(time.Duration(to)*time.Second)
		default:
			if strings.Contains(k, "#") {
				continue
			}
			return fmt.Errorf("unknown word %q", k)
		}
	}
	if inst.State == runtime.ContainerExited && inst.FinishedAt.IsZero() {
		inst.FinishedAt = epoch
	}
	s.status.Containers = slices.Insert(s.status.Containers, 0, inst)
	return nil
}

func (s *model) spec(name string) *v1.Container {
	for i := range s.pod.Spec.InitContainers {
		if s.pod.Spec.InitContainers[i].Name == name {
			return &s.pod.Spec.InitContainers[i]
		}
	}
	for i := range s.pod.Spec.Containers {
		if s.pod.Spec.Containers[i].Name == name {
			return &s.pod.Spec.Containers[i]
		}
	}
	for i := range s.pod.Spec.EphemeralContainers {
		if s.pod.Spec.EphemeralContainers[i].Name == name {
			return (*v1.Container)(&s.pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		}
	}
	return nil
}

func (s *model) input() plan.Input {
	return plan.Input{
		Pod: s.pod, Status: s.status, Probes: s.probes, Backoff: s.backoff, History: plan.History{RestartCounts: s.counts, Exits: s.ended},
		RestoreFrom: s.restore, IgnoreRestartAll: s.ignore, Now: s.now,
	}
}

func (s *model) plan() plan.Plan { return plan.Compute(s.input()) }

// computeChecked returns the plan of in, and checks that a second call returns the same.
func computeChecked(t testing.TB, in plan.Input) plan.Plan {
	t.Helper()
	p := plan.Compute(in)
	require.Equal(t, p, plan.Compute(in))
	return p
}

// apply executes a plan as a runtime without faults does. Starts in back-off are
// skipped.
func (s *model) apply(p plan.Plan) { s.applyStarts(p, len(p.Start)) }

// applyStarts is apply, but is interrupted after a number of starts.
func (s *model) applyStarts(p plan.Plan, starts int) {
	for _, r := range p.Replaced {
		s.instance(r.ID).Replaced = true
	}
	if p.KillPod {
		for i := range s.status.Containers {
			s.stop(&s.status.Containers[i])
		}
		for i := range s.status.Sandboxes {
			s.status.Sandboxes[i].State = runtime.SandboxNotReady
			s.status.Sandboxes[i].IPs = nil
		}
	}
	for _, k := range p.Kill {
		s.stop(s.instance(k.ID))
	}
	for _, r := range p.Remove {
		s.note(r)
		s.remove(r.ID)
	}
	for _, r := range p.Resize {
		s.instance(r.ID).Resources = r.To
	}
	sandbox := p.SandboxID
	if p.CreateSandbox {
		s.created++
		sandbox = fmt.Sprintf("sandbox-%d", s.created)
		sb := runtime.SandboxStatus{
			ID: sandbox, State: runtime.SandboxReady, Attempt: p.Attempt, CreatedAt: s.now,
			HostNetwork: s.pod.Spec.HostNetwork, NetworkReported: true, IPs: []string{"10.0.0.1"},
		}
		s.status.Sandboxes = slices.Insert(s.status.Sandboxes, 0, sb)
	}
	create := func(st plan.Start) string {
		s.created++
		id := fmt.Sprintf("%s-%d.%d", st.Name, st.RestartCount, s.created)
		// Into a new list: the plan points into the old one.
		s.status.Containers = slices.Insert(slices.Clip(s.status.Containers), 0, runtime.ContainerStatus{
			ID: id, Name: st.Name, SandboxID: sandbox, State: runtime.ContainerCreated, RestartCount: st.RestartCount,
			Hash: plan.Hash(st.Container), CreatedAt: s.now, Resources: st.Container.Resources.DeepCopy(),
		})
		s.backoff.Started(s.pod, st, s.now)
		return id
	}
	list := slices.Clone(p.Start)
	if p.Restore != "" && p.CreateSandbox {
		s.restored = append(s.restored, sandbox)
		for i := range list {
			list[i].Resume = create(list[i])
		}
	}
	for i, st := range list {
		if i == starts {
			return
		}
		if st.InBackoff() {
			continue
		}
		if st.Resume == "" {
			st.Resume = create(st)
		}
		inst := s.instance(st.Resume)
		inst.State, inst.StartedAt = runtime.ContainerRunning, s.now
	}
	s.restore = ""
}

func (s *model) instance(id string) *runtime.ContainerStatus {
	for i := range s.status.Containers {
		if s.status.Containers[i].ID == id {
			return &s.status.Containers[i]
		}
	}
	panic("no instance " + id)
}

func (s *model) stop(inst *runtime.ContainerStatus) {
	if inst.State == runtime.ContainerRunning || inst.State == runtime.ContainerUnknown {
		if s.clean {
			s.exit(inst, 0)
			return
		}
		s.exit(inst, 137)
	}
}

// remove removes an instance from the runtime and records its restart count.
func (s *model) remove(id string) {
	inst := s.instance(id)
	s.record(inst.Name, inst.RestartCount)
	s.status.Containers = slices.DeleteFunc(slices.Clone(s.status.Containers), func(c runtime.ContainerStatus) bool { return c.ID == id })
}

// note records the exit of a removed instance.
func (s *model) note(r plan.Removal) {
	if s.ended = maps.Clone(s.ended); s.ended == nil {
		s.ended = make(map[string]*runtime.ContainerStatus)
	}
	if r.Ended == nil {
		delete(s.ended, r.Name)
		return
	}
	was := *r.Ended
	s.ended[r.Name] = &was
}

// record adds the restart count of an instance to the history.
func (s *model) record(name string, count int32) {
	if s.counts == nil {
		s.counts = make(map[string]int32)
	}
	s.counts[name] = max(s.counts[name], count)
}

func (s *model) exit(inst *runtime.ContainerStatus, code int32) {
	inst.State, inst.ExitCode, inst.FinishedAt = runtime.ContainerExited, code, s.now
}

// brief formats a plan as one line.
func brief(p plan.Plan) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if p.KillPod {
		say("killpod(%s)", p.KillReason)
	}
	for _, k := range p.Kill {
		grace := ""
		if k.GracePeriodSeconds != nil {
			grace = fmt.Sprintf(" in %ds", *k.GracePeriodSeconds)
		}
		say("kill %s(%s)%s", k.ID, k.Reason, grace)
	}
	for _, r := range p.Remove {
		how := "remove"
		if r.Running {
			how = "stop and remove"
		}
		if r.Trigger {
			how += " trigger"
		}
		say("%s %s", how, r.ID)
	}
	switch {
	case p.Restore != "" && p.CreateSandbox:
		say("restore %d from %s", p.Attempt, p.Restore)
	case p.Restore != "":
		say("restoring")
	case p.CreateSandbox:
		say("sandbox %d", p.Attempt)
	}
	for _, s := range p.Start {
		switch {
		case s.Resume != "":
			say("resume %s(%s)", s.Resume, s.Reason)
		case s.InBackoff():
			say("start %s#%d(%s) at %d", s.Name, s.RestartCount, s.Reason, int(s.NotBefore.Sub(epoch).Seconds()))
		default:
			say("start %s#%d(%s)", s.Name, s.RestartCount, s.Reason)
		}
	}
	for _, r := range p.Resize {
		say("resize %s(%s)", r.ID, r.Why)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}
