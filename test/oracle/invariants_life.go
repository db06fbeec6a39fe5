package oracle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// lifeInvariants are the invariants of the lifecycle of pods.
func lifeInvariants() []Invariant {
	return []Invariant{{
		Name: "deadline-enforced", check: onEachPod(deadlineEnforced),
		Description: "without faults, a pod is terminal at most 30 seconds after its activeDeadlineSeconds and its grace period",
		Source:      "API reference, PodSpec.activeDeadlineSeconds: the system will actively try to mark it failed and kill associated containers",
	}, {
		Name: "deletion-in-time", check: onEachPod(deletionInTime),
		Description: "without faults, a deleted pod is gone at most 30 seconds after its grace period",
		Source:      "Pod lifecycle, Termination of Pods: once the grace period is over, remaining processes are killed, and the Pod is deleted from the API server",
	}, {
		Name: "no-stuck-pod", check: onSettledPod(noStuckPod),
		Description: "finally, a pod that is neither terminal nor deleted has a running container, or one that is in back-off",
		Source:      "Pod lifecycle, Pod lifetime: Pods run until their containers terminate; phases Pending, Running, Succeeded and Failed",
	}, {
		Name: "terminal-when-done", check: onSettledPod(terminalWhenDone),
		Description: "finally, a pod whose containers have terminated and must not restart is Succeeded or Failed",
		Source:      "Pod lifecycle, Pod phase; Init containers: if an init container fails and the policy is Never, the Pod is failed",
	}, {
		Name: "observed-generation-catches-up", check: onSettledPod(observedGenerationCatchesUp),
		Description: "finally, status.observedGeneration is metadata.generation",
		Source:      "API reference, PodStatus.observedGeneration: the generation of the spec that the status reflects",
	}, {
		Name: "grace-period-given", check: gracePeriodGiven,
		Description: "a container of a deleted pod is not killed before the end of its grace period",
		Source:      "Pod lifecycle, Termination of Pods: when the grace period expires, the kubelet triggers forcible shutdown",
	}, {
		Name: "grace-period-not-exceeded", check: graceNotExceeded,
		Description: "a container of a deleted pod is stopped with a timeout of at most its grace period, which is at least 2 seconds",
		Source:      "Pod lifecycle, Termination of Pods: the grace period includes the time of the stop",
	}, {
		Name: "no-start-while-deleting", check: noStartWhileDeleting,
		Description: "no container starts 10 seconds or more after the deletion of its pod was requested",
		Source:      "Pod lifecycle, Termination of Pods: the kubelet begins the local Pod shutdown process as soon as it observes the deletion",
	}, {
		Name: "ephemeral-runs-once", check: ephemeralRunsOnce,
		Description: "an ephemeral container is started once",
		Source:      "Ephemeral containers: they will never be automatically restarted",
	}, {
		Name: "restart-has-back-off", check: restartHasBackOff,
		Description: "a container that has failed three times by itself does not restart within 5 seconds of its exit, in whatever sandbox",
		Source:      "Pod lifecycle, How Pods handle problems with containers: restarts have an exponential back-off delay (10s, 20s, 40s, …)",
	}, {
		Name: "kubelet-keeps-running", check: kubeletKeepsRunning,
		Description: "without faults, the kubelet does not exit by itself",
		Source:      "kubelet: it works as a daemon",
	}, {
		Name: "no-orphans", check: noOrphans,
		Description: "finally, no container of a deleted pod runs",
		Source:      "Pod lifecycle, Termination of Pods: the kubelet removes the containers of deleted Pods",
	}}
}

// onEachPod makes a check of each pod that another client has not written, at each record.
func onEachPod(check func(v *view, p *podView) string) func(*view, *Record) []finding {
	return func(v *view, _ *Record) (out []finding) {
		for uid, p := range v.pods {
			if p.pod == nil || p.deleted || p.marked {
				continue
			}
			if message := check(v, p); message != "" {
				out = append(out, finding{uid, message})
			}
		}
		return out
	}
}

// onSettledPod makes a check of each pod that exists when the pods should have reached their final state, if the last
// change of the runtime was settledAfter ago.
func onSettledPod(check func(v *view, p *podView) string) func(*view, *Record) []finding {
	each := onEachPod(func(v *view, p *podView) string {
		if v.isWaiting(p) || p.pod.DeletionTimestamp != nil || terminal(p.pod.Status.Phase) || v.now-p.changedAt < settledAfter || v.now-p.addedAt < settledAfter {
			return ""
		}
		return check(v, p)
	})
	return func(v *view, r *Record) []finding {
		if r.Mark == nil || *r.Mark != markSettled {
			return nil
		}
		return each(v, r)
	}
}

// settledAfter is longer than any pause of a kubelet between two attempts, except for a back-off, which it reports.
const settledAfter = 95 * time.Second

func (v *view) uids() []types.UID {
	var out []types.UID
	for uid := range v.pods {
		out = append(out, uid)
	}
	slices.SortFunc(out, func(a, b types.UID) int { return compareText(string(a), string(b)) })
	return out
}

func deadlineEnforced(v *view, p *podView) string {
	d := p.pod.Spec.ActiveDeadlineSeconds
	if d == nil || p.pod.Status.StartTime == nil || terminal(p.pod.Status.Phase) || p.pod.DeletionTimestamp != nil {
		return ""
	}
	at := p.addedAt + time.Duration(*d)*time.Second
	if late := v.now - at; late > p.grace()+margin && v.calm(at) {
		return fmt.Sprintf("its deadline of %d s was %v ago, its grace period is %v, and its phase is %s", *d, late.Round(time.Second), p.grace(), p.pod.Status.Phase)
	}
	return ""
}

func deletionInTime(v *view, p *podView) string {
	if p.deletingAt == 0 {
		return ""
	}
	if late := v.now - p.deletingAt; late > p.grace()+margin && v.calm(p.deletingAt) {
		return fmt.Sprintf("its deletion was requested %v ago, and its grace period is %v", late.Round(time.Second), p.grace())
	}
	return ""
}

func noStuckPod(_ *view, p *podView) string {
	if len(p.running()) > 0 {
		return ""
	}
	s := &p.pod.Status
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && (strings.HasSuffix(w.Reason, "BackOff") || w.Reason == "ErrImagePull") {
			return ""
		}
	}
	return fmt.Sprintf("nothing runs, the phase is %s, and no container is in back-off", s.Phase)
}

func terminalWhenDone(_ *view, p *podView) string {
	for i := range p.pod.Spec.InitContainers {
		c := &p.pod.Spec.InitContainers[i]
		if podspec.IsSidecar(c) {
			continue
		}
		is := p.newest(c.Name)
		if is == nil || is.endedAt == 0 {
			return ""
		}
		if !podspec.Succeeded(p.pod, c, is.exit()) {
			if !p.over(c, is) {
				return ""
			}
			return fmt.Sprintf("init container %s has failed (%d %s) and must not restart, and the phase is %s", c.Name, is.code, is.reason, p.pod.Status.Phase)
		}
	}
	for i := range p.pod.Spec.Containers {
		if c := &p.pod.Spec.Containers[i]; !p.over(c, p.newest(c.Name)) {
			return ""
		}
	}
	return fmt.Sprintf("all containers have terminated and must not restart, and the phase is %s", p.pod.Status.Phase)
}

func observedGenerationCatchesUp(_ *view, p *podView) string {
	if is := p.pod.Status.ObservedGeneration; is != p.pod.Generation {
		return fmt.Sprintf("observedGeneration is %d, generation is %d", is, p.pod.Generation)
	}
	return ""
}

// gracePeriodGiven allows one second for the rounding of deadlines.
func gracePeriodGiven(v *view, r *Record) []finding {
	if r.Change == nil || r.Change.To != "exited" || !r.Change.Stopped || r.Change.ExitCode != 137 || r.Change.Reason == "OOMKilled" {
		return nil
	}
	p := v.pods[r.Change.Pod]
	if v.stale || p.pod == nil || p.deletingAt == 0 || p.crashed || p.removed || p.overAt > 0 || p.pod.Spec.ActiveDeadlineSeconds != nil || p.instances[r.Change.ID].unhealthy || p.doneBeforeDeletion() {
		return nil
	}
	if had := v.now - p.deletingAt; had < p.grace()-1500*time.Millisecond {
		return found(p.uid, "%s was killed %v after the deletion, and its grace period is %v", r.Change.Container, had.Round(100*time.Millisecond), p.grace())
	}
	return nil
}

// doneBeforeDeletion reports whether the regular containers of a deleted pod had
// completed before, so that its sidecars were being stopped.
func (p *podView) doneBeforeDeletion() bool {
	for i := range p.pod.Spec.Containers {
		c := &p.pod.Spec.Containers[i]
		if is := p.newest(c.Name); !p.over(c, is) || is.endedAt >= p.deletingAt {
			return false
		}
	}
	return true
}

// startTime is the time after its start in which a kubelet may not have read the pods.
const startTime = 10 * time.Second

// unread reports whether the kubelet may not have read the deletion of a pod: it was not running, or requests to the
// API server have a fault, or had one a moment ago.
func (v *view) unread(p *podView) bool {
	gone := p.goneAt > 0 && p.goneAt < v.startAt+startTime
	fault := v.apiTo > 0 && v.apiFrom < p.deletingAt+2*time.Second && v.now < v.apiTo+startTime
	return gone || fault
}

func graceNotExceeded(v *view, r *Record) []finding {
	if r.Call == nil || r.Call.Method != "StopContainer" {
		return nil
	}
	p := v.pods[r.Call.Pod]
	if p == nil || p.pod == nil || p.deletingAt == 0 || p.deletedAgain {
		return nil
	}
	if began := v.now - r.Call.Took; began < p.deletingAt+2*time.Second {
		return nil // it may be because of a probe
	}
	if v.unread(p) {
		return nil
	}
	if most := max(p.grace(), 2*time.Second); time.Duration(r.Call.Timeout)*time.Second > most {
		return found(p.uid, "%s is stopped with a timeout of %d s, and its grace period is %v", r.Call.Container, r.Call.Timeout, p.grace())
	}
	return nil
}

func noStartWhileDeleting(v *view, r *Record) []finding {
	if r.Change == nil || r.Change.To != "running" {
		return nil
	}
	p := v.pods[r.Change.Pod]
	if p.deletingAt == 0 || v.now-p.deletingAt < 10*time.Second || !v.calm(p.deletingAt) {
		return nil
	}
	return found(p.uid, "%s was started %v after the deletion was requested", r.Change.Container, (v.now - p.deletingAt).Round(time.Second))
}

func ephemeralRunsOnce(v *view, r *Record) []finding {
	if r.Change == nil || r.Change.To != "running" {
		return nil
	}
	p := v.pods[r.Change.Pod]
	if p.pod == nil || !slices.ContainsFunc(p.pod.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == r.Change.Container }) {
		return nil
	}
	for _, is := range p.instances {
		if is.name == r.Change.Container && is.id != r.Change.ID && is.started {
			return found(p.uid, "%s was started again", r.Change.Container)
		}
	}
	return nil
}

// restartHasBackOff does not apply after a restart of the kubelet, which keeps back-offs in memory.
func restartHasBackOff(v *view, r *Record) []finding {
	if r.Change == nil || r.Change.To != "running" || v.agents > 1 {
		return nil
	}
	p := v.pods[r.Change.Pod]
	if p.pod == nil || p.crashed || p.removed || p.changed {
		return nil
	}
	failed, last := 0, time.Duration(0)
	for _, is := range p.instances {
		if is.name == r.Change.Container && is.endedAt > 0 && !is.stopped && (is.code != 0 || is.reason == "OOMKilled") {
			failed, last = failed+1, max(last, is.endedAt)
		}
	}
	if failed >= 3 && v.now-last < 5*time.Second {
		return found(p.uid, "%s has failed %d times, and was started %v after its exit", r.Change.Container, failed, (v.now - last).Round(100*time.Millisecond))
	}
	return nil
}

func kubeletKeepsRunning(v *view, r *Record) []finding {
	if r.Agent != nil && r.Agent.What == "exited" && v.now > v.faultAt {
		return found("", "process %d has exited", r.Agent.Number)
	}
	return nil
}

func noOrphans(v *view, r *Record) []finding {
	if r.Mark == nil || *r.Mark != markEnded {
		return nil
	}
	for _, uid := range v.uids() {
		if p := v.pods[uid]; p.deleted && len(p.running()) > 0 && v.now-p.changedAt > margin {
			return found(uid, "%s runs", p.running()[0].name)
		}
	}
	return nil
}
