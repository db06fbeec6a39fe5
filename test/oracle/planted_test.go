package oracle

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	"completed-before-deadline": func(p *tape) {
		p.step("0s add web policy=Never deadline=10 main:c=exit=0@1s")
		p.runs("c", "a", 0)
		p.wait(time.Second)
		p.container("c", "a", 0, "exited")
		p.status(v1.PodFailed, with(exited("a", 0)), func(s *v1.PodStatus) {
			s.Reason = "DeadlineExceeded"
			s.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.Unix(1008, 0) // it was started at 1000
		})
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
