package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/sim"
)

// An Invariant holds for any kubelet, in any scenario.
type Invariant struct {
	Name        string
	Description string // one sentence
	Source      string // where Kubernetes documents it

	// check returns how a record violates the invariant, with the pod of each violation. Nil: the invariant is of
	// package sim.
	check func(*view, *Record) []finding
}

// A Violation is a violated invariant.
type Violation struct {
	At        time.Duration `json:"at"`
	Invariant string        `json:"invariant"`
	Pod       string        `json:"pod"` // its name
	Message   string        `json:"message"`
}

// A finding is a violation by a pod.
type finding struct {
	pod     types.UID
	message string
}

// found returns one finding.
func found(pod types.UID, format string, args ...any) []finding {
	return []finding{{pod, fmt.Sprintf(format, args...)}}
}

// String returns the violation in one line.
func (v Violation) String() string {
	return fmt.Sprintf("%.1fs %s: pod %s: %s", v.At.Seconds(), v.Invariant, v.Pod, v.Message)
}

// Invariants returns the invariants of this package and of package sim.
func Invariants() []Invariant {
	out := slices.Concat(statusInvariants(), lifeInvariants())
	for _, inv := range checkedBySim() {
		out = append(out, Invariant{Name: inv.Name, Description: inv.Description, Source: "package sim, rules " + cmp.Or(inv.Rules, "none")})
	}
	return out
}

// check returns the violations of a recording, at most one for each invariant and pod, in order of time.
func check(run *Recording) ([]Violation, error) {
	s, err := ParseScenario(run.Scenario)
	if err != nil {
		return nil, err
	}
	var out []Violation
	reported := map[[2]string]bool{}
	add := func(v Violation) {
		if key := [2]string{v.Invariant, v.Pod}; !reported[key] {
			reported[key] = true
			out = append(out, v)
		}
	}
	t, checker := newTranslator(s), sim.NewChecker(checkedBySim(), true, true)
	v := newView(run.Records)
	own := Invariants()
	for i := range run.Records {
		r := &run.Records[i]
		v.apply(r)
		for _, inv := range own {
			if inv.check == nil {
				continue
			}
			for _, f := range inv.check(v, r) {
				add(Violation{r.At, inv.Name, v.name(f.pod), f.message})
			}
		}
		for _, e := range t.entries(*r) {
			e.At = r.At
			for _, of := range checker.Add(e, t.start.Add(r.At)) {
				if v.excused(of) {
					continue
				}
				add(Violation{r.At, of.Invariant, v.name(of.UID), of.Message})
			}
		}
	}
	return out, nil
}

// excused reports whether a violation of package sim is none here: a scenario removed the containers that the
// invariant is about, another client wrote the status, or the machine was too slow.
func (v *view) excused(of sim.Violation) bool {
	p := v.pods[of.UID]
	if p == nil {
		return false
	}
	switch of.Invariant {
	case "init-order":
		return p.pod != nil && slices.ContainsFunc(p.pod.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return strings.HasPrefix(of.Message, c.Name+" ") })
	case "restart-count-increases", "back-off", "finally-last-state", "reported-restart-count", "exit-codes-correct", "reported-instance-never-older":
		return p.removed || p.marked
	case "finally-reported", "finally-running":
		return v.stale || v.isWaiting(p) || p.marked
	case "finally-ready":
		return v.isWaiting(p) || p.marked
	case "sidecars-stop-last": // at the end of the grace period they may stop together
		return p.pod == nil || v.now-p.deletingAt > p.grace()-time.Second
	case "unhealthy-restarted", "no-probe-after-exit":
		return v.stalled || p.removed
	}
	return p.marked
}

// A view is what the records so far say.
type view struct {
	now     time.Duration
	agent   bool // the kubelet runs
	stalled bool
	calmAt  time.Duration // since when no fault has had an effect, and the kubelet has been running
	faultAt time.Duration // until when a fault lasts
	apiFrom time.Duration // since when, and until when, requests to the API server have a fault
	apiTo   time.Duration
	hungTo  time.Duration // until when a call of the runtime may hang
	stale   bool          // the runtime has reported an earlier state as the present one
	agents  int           // kubelets that were started
	startAt time.Duration // of the last one
	quiet   bool          // no further step
	settled bool
	pods    map[types.UID]*podView
	names   map[string]types.UID // of the newest pods
}

// A podView is a pod.
type podView struct {
	uid                         types.UID
	pod, before                 *v1.Pod // the newest version, and the one before
	podAt, beforeAt             time.Duration
	sandboxAt                   time.Duration // the last change of a sandbox
	changed                     bool          // an image of it has changed
	deleted                     bool
	addedAt, deletingAt, overAt time.Duration // zero: it is not
	goneAt                      time.Duration // from the API server; zero: it is not
	removed                     bool          // a step removed containers
	marked                      bool          // another client has set the phase
	crashed                     bool          // its sandbox has stopped without a call, or may have
	losses, regressions         int           // of sandboxes; of the phase from Running to Pending
	changedAt                   time.Duration // the last change in the runtime
	instances                   map[string]*instance
	sandboxes                   map[string]string // states by ID
	deletedAgain                bool              // its grace period has changed
}

// An instance is an instance of a container.
type instance struct {
	id, name, sandbox, image string
	attempt                  uint32
	state                    string
	started                  bool
	createdAt                time.Duration
	startedAt, endedAt       time.Duration
	code                     int32
	reason                   string
	stopped                  bool // a stop had been called when it exited
	unhealthy                bool // a liveness or startup probe has failed
}

// recovery is the time after a fault in which a kubelet may be slow: its longest time between two attempts,
// that of a request to the API server, or the time to start.
const recovery = 75 * time.Second

func newView(records []Record) *view {
	v := &view{pods: map[types.UID]*podView{}, names: map[string]types.UID{}}
	for _, r := range records {
		v.stalled = v.stalled || r.Mark != nil && *r.Mark == markStalled
	}
	v.stalled = v.stalled || slowStarts(records) > slowShare
	return v
}

// A kubelet that has too little of the processor is slow in everything: if more than slowShare of the pods have
// no first status after slowStart, without faults before, latencies are not checked.
const (
	slowStart = 5 * time.Second
	slowShare = 0.05
)

// slowStarts returns the share of the pods, of those that were added before the first
// fault, whose first status was late.
func slowStarts(records []Record) float64 {
	added, late, total := map[types.UID]time.Duration{}, 0, 0
	for _, r := range records {
		if r.Step != nil && len(added) > 0 {
			if s, err := parseStep(*r.Step); err == nil && (s.Do == sim.Fault || s.Do == sim.Kill || s.Do == sim.Reboot) {
				break
			}
		}
		if r.Pod == nil {
			continue
		}
		uid := r.Pod.Pod.UID
		switch at, ok := added[uid]; {
		case !ok:
			added[uid] = r.At
		case at >= 0 && r.Pod.Pod.Status.StartTime != nil:
			total++
			if r.At-at > slowStart {
				late++
			}
			added[uid] = -1
		}
	}
	return float64(late) / float64(max(total, 1))
}

func (v *view) name(uid types.UID) string {
	if p := v.pods[uid]; p != nil && p.pod != nil {
		return p.pod.Name
	}
	return string(uid)
}

func (v *view) of(uid types.UID) *podView {
	p := v.pods[uid]
	if p == nil {
		p = &podView{uid: uid, instances: map[string]*instance{}, sandboxes: map[string]string{}}
		v.pods[uid] = p
	}
	return p
}

// calm reports whether latencies are checked: no fault has had an effect since a time.
func (v *view) calm(since time.Duration) bool { return v.agent && !v.stalled && v.calmAt <= since }

func (v *view) apply(r *Record) {
	v.now = r.At
	switch {
	case r.Step != nil:
		v.step(*r.Step)
	case r.Agent != nil:
		if v.agent = r.Agent.What == "started"; v.agent {
			v.agents, v.startAt = r.Agent.Number, v.now
		}
		if r.Agent.Number > 1 || !v.agent {
			v.calmAt = max(v.calmAt, v.now+recovery)
		}
	case r.Mark != nil:
		v.quiet = v.quiet || *r.Mark == markQuiet
		v.settled = v.settled || *r.Mark == markSettled
	case r.Call != nil:
		p := v.of(r.Call.Pod)
		if is := p.instances[r.Call.ID]; is != nil && r.Call.Method == "ExecSync" && len(r.Call.Command) == 2 && r.Call.Err == "" {
			is.unhealthy = is.unhealthy || r.Call.Command[0] == probeCommand && r.Call.Exit != 0 && r.Call.Command[1] != "Readiness"
		}
	case r.Change != nil:
		v.of(r.Change.Pod).change(r.Change, v.now)
	case r.Pod != nil:
		p := v.of(r.Pod.Pod.UID)
		if p.pod == nil {
			p.addedAt = v.now
			v.names[r.Pod.Pod.Name] = r.Pod.Pod.UID
		}
		p.before, p.pod, p.deleted = p.pod, r.Pod.Pod, r.Pod.Deleted
		if p.deleted {
			p.goneAt = v.now
		}
		p.beforeAt, p.podAt = p.podAt, v.now
		p.changed = p.changed || p.before != nil && !sameImages(p.before, p.pod)
		if p.deletingAt == 0 && p.pod.DeletionTimestamp != nil {
			p.deletingAt = v.now
		}
		if p.before != nil && p.before.DeletionGracePeriodSeconds != nil && *p.before.DeletionGracePeriodSeconds != *p.pod.DeletionGracePeriodSeconds {
			p.deletedAgain = true
		}
		if p.before != nil && p.before.Status.Phase == v1.PodRunning && p.pod.Status.Phase == v1.PodPending {
			p.regressions++
		}
		if p.overAt == 0 && terminal(p.pod.Status.Phase) {
			p.overAt = v.now
		}
		p.marked = p.marked || p.pod.Status.Reason == "Lost"
	}
}

func (v *view) step(text string) {
	s, err := parseStep(text)
	if err != nil {
		return
	}
	switch p := v.pods[v.names[s.Pod]]; {
	case s.Do == sim.Fault:
		v.fault(s)
	case s.Do == sim.Reboot:
		for _, p := range v.pods {
			p.crashed = true
		}
	case p == nil:
	case s.Do == sim.Remove:
		p.removed = true
	case s.Do == sim.Crash:
		p.crashed = true
	case s.Do == sim.Fail:
		p.marked = true
	}
}

func (v *view) fault(s Step) {
	end := v.now + s.For + s.Delay
	v.stale = v.stale || s.Kind == sim.Stale
	v.faultAt, v.calmAt = max(v.faultAt, end), max(v.calmAt, end+recovery)
	switch {
	case s.Calls == apiCalls:
		if v.now > v.apiTo {
			v.apiFrom = v.now
		}
		v.apiTo = max(v.apiTo, end)
	case s.Kind == sim.Hung:
		v.hungTo = max(v.hungTo, v.now+s.For+hangs(s.Calls))
	}
}

// hangs returns how long a kubelet waits for a call of the runtime that hangs, and until it has repeated it. A pull
// and a postStart hook have no deadline. That of other calls is runtimeRequestTimeout, 2 minutes.
func hangs(method string) time.Duration {
	if slices.Contains([]string{"PullImage", "ExecSync", criCalls}, method) {
		return 24 * time.Hour
	}
	return 2*time.Minute + 20*time.Second
}

// isWaiting reports whether a kubelet may still wait for the runtime before it does what is left to do for a pod:
// for a call that hangs, or for a postStart hook that runs.
func (v *view) isWaiting(p *podView) bool {
	return v.now < v.hungTo || p.pod != nil && slices.ContainsFunc(p.running(), func(is *instance) bool {
		i := slices.IndexFunc(p.pod.Spec.Containers, func(c v1.Container) bool { return c.Name == is.name })
		return i >= 0 && v.now < is.startedAt+sim.HookDuration(&p.pod.Spec.Containers[i])+margin
	})
}

func (p *podView) change(c *Change, now time.Duration) {
	p.changedAt = now
	if c.Container == "" {
		p.sandboxAt = now
		if p.sandboxes[c.ID] = c.To; c.To == "not ready" {
			p.losses++
		}
		return
	}
	is := p.instances[c.ID]
	if is == nil {
		is = &instance{id: c.ID, name: c.Container, sandbox: c.Sandbox, image: c.Image, attempt: c.Attempt, createdAt: now}
		p.instances[c.ID] = is
	}
	is.state = c.To
	switch c.To {
	case "running":
		is.started, is.startedAt = true, now
	case "exited":
		is.endedAt, is.code, is.reason, is.stopped = now, c.ExitCode, c.Reason, c.Stopped
	}
}

// running returns the running instances.
func (p *podView) running() (out []*instance) {
	for _, is := range p.instances {
		if is.state == "running" {
			out = append(out, is)
		}
	}
	slices.SortFunc(out, func(a, b *instance) int { return compareText(a.id, b.id) })
	return out
}

// newest returns the newest instance of a container that was started or has exited, removed ones included.
func (p *podView) newest(name string) (newest *instance) {
	for _, is := range p.instances {
		if is.name == name && (is.started || is.endedAt > 0) && (newest == nil || is.createdAt > newest.createdAt) {
			newest = is
		}
	}
	return newest
}

// over reports whether an instance has exited and must not be restarted.
func (p *podView) over(c *v1.Container, is *instance) bool {
	return is != nil && is.endedAt > 0 && podspec.ActionAfterExit(p.pod, c, is.exit()) == podspec.NoRestart
}

// exit returns the end of an instance.
func (is *instance) exit() podspec.Exit {
	return podspec.Exit{Code: is.code, Reason: is.reason, Replaced: is.unhealthy && is.stopped}
}

// grace returns the grace period of the pod's termination in seconds.
func (p *podView) grace() time.Duration {
	g := *p.pod.Spec.TerminationGracePeriodSeconds
	if d := p.pod.DeletionGracePeriodSeconds; d != nil {
		g = *d
	}
	return time.Duration(g) * time.Second
}
