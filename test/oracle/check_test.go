package oracle

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A tape makes the records of a run by hand.
type tape struct {
	t       *testing.T
	at      time.Duration
	records []Record
	pods    map[string]*v1.Pod
}

func newTape(t *testing.T) *tape {
	p := &tape{t: t, pods: map[string]*v1.Pod{}}
	p.add(Record{Agent: &Agent{1, "started"}})
	return p
}

func (p *tape) add(r Record) {
	r.At = p.at
	p.records = append(p.records, r)
}

func (p *tape) wait(d time.Duration) { p.at += d }

// step records a step, and the pod of one that adds a pod.
func (p *tape) step(text string) {
	s, err := parseStep(text)
	require.NoError(p.t, err)
	p.wait(100 * time.Millisecond)
	p.add(Record{Step: &text})
	if s.Do == "add" {
		pod := s.pod()
		pod.UID, pod.Generation = "uid-web", 1
		pod.Status.Phase = v1.PodPending
		p.pods[pod.Name] = pod
		p.version(func(*v1.Pod) {})
	}
}

// version records a version of the pod "web".
func (p *tape) version(change func(pod *v1.Pod)) {
	pod := p.pods["web"].DeepCopy()
	change(pod)
	p.pods["web"] = pod
	p.add(Record{Pod: &Version{Pod: pod.DeepCopy()}})
}

// status records a status of the pod "web" with its generation observed.
func (p *tape) status(phase v1.PodPhase, change ...func(s *v1.PodStatus)) {
	p.version(func(pod *v1.Pod) {
		pod.Status.Phase, pod.Status.ObservedGeneration = phase, pod.Generation
		pod.Status.StartTime = &metav1.Time{Time: time.Unix(1000, 0)}
		for _, c := range change {
			c(&pod.Status)
		}
	})
}

func (p *tape) gone() {
	p.add(Record{Request: &Request{Verb: "delete", Pod: "web"}})
	p.add(Record{Pod: &Version{Pod: p.pods["web"].DeepCopy(), Deleted: true}})
}

func (p *tape) deleting(grace int64) {
	p.version(func(pod *v1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(2000, 0)}, &grace
		pod.Generation++
	})
}

func (p *tape) sandbox(id, to string) {
	p.add(Record{Change: &Change{Pod: "uid-web", ID: id, To: to}})
}

// container records a change of an instance of a container, in the sandbox "s".
func (p *tape) container(name, id string, attempt uint32, to string, change ...func(*Change)) {
	c := &Change{Pod: "uid-web", Container: name, ID: id, Sandbox: "s", Attempt: attempt, To: to}
	for _, list := range [][]v1.Container{p.pods["web"].Spec.InitContainers, p.pods["web"].Spec.Containers} {
		for _, spec := range list {
			if spec.Name == name {
				c.Image = spec.Image
			}
		}
	}
	for _, f := range change {
		f(c)
	}
	p.add(Record{Change: c})
}

// runs records that an instance is created and started.
func (p *tape) runs(name, id string, attempt uint32) {
	p.container(name, id, attempt, "created")
	p.container(name, id, attempt, "running")
}

func code(n int32) func(*Change) { return func(c *Change) { c.ExitCode = n } }
func stopped(c *Change)          { c.Stopped = true }

func (p *tape) call(c Call) {
	c.Pod = "uid-web"
	p.add(Record{Call: &c})
}

func (p *tape) probe(id, kind string, exit int32) {
	p.call(Call{Method: "ExecSync", Container: "c", ID: id, Command: []string{probeCommand, kind}, Exit: exit})
}

func (p *tape) mark(m string) { p.add(Record{Mark: &m}) }

// settle records the end of a run after a quiet time.
func (p *tape) settle() {
	p.mark(markQuiet)
	p.wait(2 * settledAfter)
	p.mark(markSettled)
}

// with sets the status of a container.
func with(c v1.ContainerStatus) func(*v1.PodStatus) {
	return func(s *v1.PodStatus) { s.ContainerStatuses = []v1.ContainerStatus{c} }
}

func running(id string) v1.ContainerStatus {
	return v1.ContainerStatus{Name: "c", ContainerID: containerID(id), State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}, Started: new(true)}
}

func exited(id string, code int32) v1.ContainerStatus {
	return v1.ContainerStatus{Name: "c", ContainerID: containerID(id), State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: containerID(id), ExitCode: code}}}
}

func has(kind v1.PodConditionType, is v1.ConditionStatus, at int64) func(*v1.PodStatus) {
	return func(s *v1.PodStatus) {
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c v1.PodCondition) bool { return c.Type == kind })
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: kind, Status: is, LastTransitionTime: metav1.Unix(at, 0)})
	}
}

// planted are, for each invariant, records that violate it.
var planted = map[string]func(p *tape){
	"ready-implies-running": func(p *tape) {
		p.step("0s add web main:c=run")
		p.status(v1.PodRunning, has(v1.PodReady, v1.ConditionTrue, 1), has(v1.ContainersReady, v1.ConditionTrue, 1), with(exited("a", 1)))
	},
	"ready-implies-started": func(p *tape) {
		p.step("0s add web main:c=started=5s")
		c := running("a")
		c.Started, c.Ready = new(false), true
		p.status(v1.PodRunning, with(c))
	},
	"initializing-is-pending": func(p *tape) {
		p.step("0s add web init:i=exit=0@1s main:c=run")
		p.status(v1.PodRunning, has(v1.PodInitialized, v1.ConditionFalse, 1))
	},
	"phase-never-regresses": func(p *tape) {
		p.step("0s add web main:c=run")
		p.status(v1.PodRunning)
		p.status(v1.PodPending)
	},
	"start-time-stable": func(p *tape) {
		p.step("0s add web main:c=run")
		p.status(v1.PodRunning)
		p.status(v1.PodRunning, func(s *v1.PodStatus) { s.StartTime = &metav1.Time{Time: time.Unix(1001, 0)} })
	},
	"transition-time": func(p *tape) {
		p.step("0s add web main:c=run")
		p.wait(10 * time.Second)
		p.status(v1.PodRunning, has(v1.PodInitialized, v1.ConditionTrue, 1))
		p.status(v1.PodRunning, has(v1.PodInitialized, v1.ConditionTrue, 2))
	},
	"restart-count-of-instance": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		c := running("a")
		c.RestartCount = 1
		p.status(v1.PodRunning, with(c))
	},
	"exit-reported-once": func(p *tape) {
		p.step("0s add web main:c=run")
		p.status(v1.PodRunning, with(exited("a", 1)))
		p.status(v1.PodRunning, with(exited("a", 2)))
	},
	"succeeded-means-success": func(p *tape) {
		p.step("0s add web policy=OnFailure main:c=unhealthy=1s clean:c")
		p.runs("c", "a", 0)
		p.probe("a", "Liveness", 1)
		p.container("c", "a", 0, "exited", stopped)
		p.status(v1.PodSucceeded)
	},
	"failed-means-failure": func(p *tape) {
		p.step("0s add web policy=Never main:c=exit=0@1s")
		p.runs("c", "a", 0)
		p.wait(time.Second)
		p.container("c", "a", 0, "exited")
		p.status(v1.PodFailed)
	},
	"observed-generation-sane": func(p *tape) {
		p.step("0s add web main:c=run")
		p.status(v1.PodRunning, func(s *v1.PodStatus) { s.ObservedGeneration = 7 })
	},
	"hook-before-running": func(p *tape) {
		p.step("0s add web main:c=run hook:c=5s")
		p.runs("c", "a", 0)
		p.status(v1.PodRunning, with(running("a")))
	},
	"deadline-enforced": func(p *tape) {
		p.step("0s add web deadline=5 grace=2 main:c=run")
		p.status(v1.PodRunning)
		p.wait(time.Minute)
		p.mark(markQuiet)
	},
	"deletion-in-time": func(p *tape) {
		p.step("0s add web grace=2 main:c=run")
		p.deleting(2)
		p.wait(time.Minute)
		p.mark(markQuiet)
	},
	"no-stuck-pod": func(p *tape) {
		p.step("0s add web policy=Never main:c=run")
		p.status(v1.PodPending)
		p.settle()
	},
	"terminal-when-done": func(p *tape) {
		p.step("0s add web policy=Never init:i=exit=0@1s,reason=OOMKilled main:c=run")
		p.runs("i", "a", 0)
		p.container("i", "a", 0, "exited", func(c *Change) { c.Reason = "OOMKilled" })
		p.status(v1.PodPending)
		p.settle()
	},
	"observed-generation-catches-up": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		p.status(v1.PodRunning, with(running("a")))
		p.version(func(pod *v1.Pod) { pod.Generation++ })
		p.settle()
	},
	"grace-period-given": func(p *tape) {
		p.step("0s add web grace=30 main:c=ignoreTERM")
		p.runs("c", "a", 0)
		p.deleting(30)
		p.wait(2 * time.Second)
		p.container("c", "a", 0, "exited", code(137), stopped)
	},
	"grace-period-not-exceeded": func(p *tape) {
		p.step("0s add web grace=5 main:c=run")
		p.runs("c", "a", 0)
		p.deleting(5)
		p.wait(3 * time.Second)
		p.call(Call{Method: "StopContainer", Container: "c", ID: "a", Timeout: 30})
	},
	"no-start-while-deleting": func(p *tape) {
		p.step("0s add web grace=30 main:c=run")
		p.deleting(30)
		p.wait(20 * time.Second)
		p.runs("c", "a", 0)
	},
	"ephemeral-runs-once": func(p *tape) {
		p.step("0s add web main:c=run")
		p.version(func(pod *v1.Pod) {
			pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
		})
		p.runs("debug", "a", 0)
		p.container("debug", "a", 0, "exited")
		p.runs("debug", "b", 1)
	},
	"restart-has-back-off": func(p *tape) {
		p.step("0s add web policy=OnFailure init:i=exit=0@1s,reason=OOMKilled main:c=run")
		for n, id := range []string{"a", "b", "c", "d"} {
			p.runs("i", id, uint32(n))
			p.wait(time.Second)
			p.container("i", id, uint32(n), "exited", func(c *Change) { c.Reason = "OOMKilled" })
		}
	},
	"kubelet-keeps-running": func(p *tape) {
		p.wait(time.Second)
		p.add(Record{Agent: &Agent{1, "exited"}})
	},
	"no-orphans": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		p.gone()
		p.wait(time.Minute)
		p.mark(markEnded)
	},

	// Those of package sim.
	"one-live-instance": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		p.runs("c", "b", 1)
	},
	"one-ready-sandbox": func(p *tape) {
		p.step("0s add web main:c=run")
		p.sandbox("s", "ready")
		p.sandbox("s2", "ready")
	},
	"restart-policy": func(p *tape) {
		p.step("0s add web policy=Never main:c=exit=0@1s")
		p.runs("c", "a", 0)
		p.wait(time.Second)
		p.container("c", "a", 0, "exited")
		p.wait(time.Minute)
		p.runs("c", "b", 1)
	},
	"init-order": func(p *tape) {
		p.step("0s add web init:i=exit=0@1s main:c=run")
		p.runs("c", "a", 0)
	},
	"back-off": func(p *tape) {
		p.step("0s add web main:c=exit=1@1s")
		for n, id := range []string{"a", "b", "c"} {
			p.runs("c", id, uint32(n))
			p.wait(time.Second)
			p.container("c", id, uint32(n), "exited", code(1))
			p.wait(2 * time.Second)
		}
	},
	"terminal-phase-final": func(p *tape) {
		p.step("0s add web policy=Never main:c=exit=0@1s")
		p.status(v1.PodFailed)
		p.status(v1.PodRunning)
	},
	"reported-restart-count": func(p *tape) {
		p.step("0s add web main:c=run")
		c := running("a")
		c.RestartCount = 2
		p.status(v1.PodRunning, with(c))
		c.RestartCount = 1
		p.status(v1.PodRunning, with(c))
	},
	"terminal-means-stopped": func(p *tape) {
		p.step("0s add web policy=Never main:c=run")
		p.runs("c", "a", 0)
		p.status(v1.PodFailed)
	},
	"terminal-not-ready": func(p *tape) {
		p.step("0s add web policy=Never main:c=run")
		p.status(v1.PodFailed, has(v1.PodReady, v1.ConditionTrue, 1))
	},
	"deleted-after-cleanup": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		p.deleting(30)
		p.gone()
	},
	"exit-codes-correct": func(p *tape) {
		p.step("0s add web main:c=exit=1@1s")
		p.runs("c", "a", 0)
		p.container("c", "a", 0, "exited", code(1))
		p.status(v1.PodRunning, with(exited("a", 2)))
	},
	"reported-instance-never-older": func(p *tape) {
		p.step("0s add web main:c=exit=1@1s")
		p.runs("c", "a", 0)
		p.container("c", "a", 0, "exited", code(1))
		p.wait(time.Second)
		p.runs("c", "b", 1)
		p.status(v1.PodRunning, with(running("b")))
		p.status(v1.PodRunning, with(exited("a", 1)))
	},
	"restart-count-increases": func(p *tape) {
		p.step("0s add web main:c=exit=1@1s")
		p.runs("c", "a", 0)
		p.container("c", "a", 0, "exited", code(1))
		p.runs("c", "b", 0)
	},
	"finally-deleted": func(p *tape) {
		p.step("0s add web main:c=run")
		p.deleting(1)
		p.settle()
	},
	"finally-running": func(p *tape) {
		p.step("0s add web main:c=run")
		p.status(v1.PodPending)
		p.settle()
	},
	"finally-reported": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		p.container("c", "a", 0, "exited", code(1))
		p.status(v1.PodRunning, with(running("a")))
		p.settle()
	},
	"finally-last-state": func(p *tape) {
		p.step("0s add web main:c=run")
		p.runs("c", "a", 0)
		p.wait(time.Second)
		p.container("c", "a", 0, "exited", code(1))
		p.wait(time.Second)
		p.runs("c", "b", 1)
		p.status(v1.PodRunning, with(running("b")))
		p.settle()
	},
	"terminal-never-restarts": func(p *tape) {
		p.step("0s add web policy=Never main:c=run")
		p.call(Call{Method: "RunPodSandbox", ID: "s"})
		p.status(v1.PodFailed)
		p.runs("c", "a", 0)
	},
	"no-status-hot-loop": func(p *tape) {
		p.step("0s add web main:c=run")
		for i := range 40 {
			p.status(v1.PodRunning, func(s *v1.PodStatus) { s.Message = string(rune('a' + i)) })
		}
	},
	"finally-all-restarted": func(p *tape) {
		p.step("0s add web main:c=exit=3@1s//3:RestartAllContainers main:d=run")
		p.runs("d", "d", 0)
		p.runs("c", "a", 0)
		p.wait(time.Second)
		p.container("c", "a", 0, "exited", code(3))
		p.status(v1.PodRunning)
		p.wait(10 * time.Minute)
		p.settle()
	},
	"back-off-resets": func(p *tape) {
		p.step("0s add web main:c=exit=1@11m")
		p.wait(time.Minute)
		p.runs("c", "a", 0)
		p.wait(11 * time.Minute)
		p.container("c", "a", 0, "exited", code(1))
		p.wait(time.Minute)
		p.runs("c", "b", 1)
	},
	"unhealthy-restarted": func(p *tape) {
		p.step("0s add web grace=1 main:c=unhealthy=1s")
		p.status(v1.PodPending)
		p.wait(time.Minute)
		p.runs("c", "a", 0)
		p.probe("a", "Liveness", 1)
		p.probe("a", "Liveness", 1)
		p.wait(5 * time.Minute)
		p.status(v1.PodRunning)
	},
	"finally-ready": func(p *tape) {
		p.step("0s add web main:c=ready=1s")
		p.runs("c", "a", 0)
		p.probe("a", "Readiness", 0)
		p.status(v1.PodRunning, with(running("a")))
		p.settle()
	},
	"startup-probe-first": func(p *tape) {
		p.step("0s add web main:c=started=5s,ready=1s")
		p.runs("c", "a", 0)
		p.probe("a", "Readiness", 1)
	},
	"no-probe-after-exit": func(p *tape) {
		p.step("0s add web main:c=ready=1s")
		p.wait(time.Minute)
		p.runs("c", "a", 0)
		p.container("c", "a", 0, "exited", code(1))
		p.wait(20 * time.Second)
		p.probe("a", "Readiness", 1)
	},
	"sidecars-stop-last": func(p *tape) {
		p.step("0s add web grace=30 side:s=run main:c=run")
		p.call(Call{Method: "RunPodSandbox", ID: "s"})
		p.runs("s", "s1", 0)
		p.runs("c", "a", 0)
		p.deleting(30)
		p.container("s", "s1", 0, "exited", code(143), stopped)
	},
}

func TestEachInvariantFindsAPlantedViolation(t *testing.T) {
	for _, inv := range Invariants() {
		t.Run(inv.Name, func(t *testing.T) {
			assert.NotEmpty(t, inv.Description)
			assert.NotEmpty(t, inv.Source)
			plant := planted[inv.Name]
			require.NotNil(t, plant, "no record violates it")
			p := newTape(t)
			plant(p)
			violations, err := check(&Recording{Records: p.records})
			require.NoError(t, err)
			assert.Contains(t, names(violations), inv.Name)
		})
	}
	assert.Len(t, planted, len(Invariants()))
}

// A pod that runs, is deleted and is gone violates nothing.
func TestAnOrdinaryLifeViolatesNothing(t *testing.T) {
	p := newTape(t)
	p.step("0s add web grace=5 init:i=exit=0@1s main:c=ready=1s hook:c=1s")
	p.status(v1.PodPending)
	p.wait(time.Second)
	p.call(Call{Method: "RunPodSandbox", ID: "s"})
	p.sandbox("s", "ready")
	p.runs("i", "i1", 0)
	p.wait(time.Second)
	p.container("i", "i1", 0, "exited")
	p.runs("c", "a", 0)
	p.call(Call{Method: "ExecSync", Container: "c", ID: "a", Command: []string{hookCommand, "1s"}})
	p.probe("a", "Readiness", 0)
	c := running("a")
	c.Ready = true
	p.status(v1.PodRunning, has(v1.PodReady, v1.ConditionTrue, 1), has(v1.ContainersReady, v1.ConditionTrue, 1), with(c))
	p.mark(markQuiet)
	p.wait(20 * time.Second)
	p.mark(markSettled)
	p.deleting(5)
	p.wait(time.Second)
	p.container("c", "a", 0, "exited", code(143), stopped)
	p.call(Call{Method: "StopContainer", Container: "c", ID: "a", Timeout: 5, Took: time.Second})
	p.sandbox("s", "not ready")
	p.status(v1.PodFailed, has(v1.PodReady, v1.ConditionFalse, 2), has(v1.ContainersReady, v1.ConditionFalse, 2), with(exited("a", 143)))
	p.gone()
	p.mark(markEnded)
	violations, err := check(&Recording{Records: p.records})
	require.NoError(t, err)
	assert.Empty(t, violations)
}

// Latencies are not checked while faults have an effect, nor on a machine that is too slow.
func TestLatenciesAreNotCheckedWithFaultsOrOnASlowMachine(t *testing.T) {
	for name, disturb := range map[string]func(p *tape){
		"a fault":      func(p *tape) { p.step("0s fault api kind=error for=30s") },
		"a stall":      func(p *tape) { p.mark(markStalled) },
		"no kubelet":   func(p *tape) { p.add(Record{Agent: &Agent{1, "killed"}}) },
		"slow at adds": func(p *tape) { p.wait(slowStart + time.Second) },
	} {
		p := newTape(t)
		p.step("0s add web grace=2 main:c=run")
		disturb(p)
		p.status(v1.PodPending)
		p.deleting(2)
		p.wait(time.Minute)
		p.mark(markQuiet)
		violations, err := check(&Recording{Records: p.records})
		require.NoError(t, err)
		assert.NotContains(t, names(violations), "deletion-in-time", name)
	}
}
