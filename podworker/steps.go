package podworker

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// PipelineHooks are called as things happen, on the goroutine they happen on;
// they must not block. Any may be nil.
type PipelineHooks struct {
	// Rejected is called for each pod that fails because it may not run on the
	// node (kubelet_admission_rejections_total, adm-15).
	Rejected func(*v1.Pod, runtime.Rejection)

	// Stepped is called after each step of a call (L-54): between them they
	// take all of its time.
	Stepped func(StepInfo)
}

// A StepInfo tells of one step of a call: "admission", "status", "cgroup",
// "mirror pod", "volumes", "runtime"; "stop", "last look"; what of the runtime's
// share goes where, the runtime tells.
type StepInfo struct {
	UID        types.UID
	Step       string
	Begin, End time.Time
}

// stepVolumes is the step in which volumes are mounted, or unmounted at the end.
const stepVolumes = "volumes"

// An atStep is what a call in flight is at.
type atStep struct {
	name  string
	since time.Time
}

// at takes note that the call in flight for the pod goes on to a step; "" ends
// the last one.
func (p *Pipeline) at(uid types.UID, name string) {
	now := time.Now()
	p.mu.Lock()
	before := p.steps[uid]
	if name == "" {
		delete(p.steps, uid)
	} else {
		p.steps[uid] = atStep{name, now}
	}
	p.mu.Unlock()
	if before.name != "" && p.cfg.Hooks.Stepped != nil {
		p.cfg.Hooks.Stepped(StepInfo{UID: uid, Step: before.name, Begin: before.since, End: now})
	}
}

func (p *Pipeline) done(uid types.UID) { p.at(uid, "") }

// Blocked implements [Blocker], if Config.Volumes does.
func (p *Pipeline) Blocked(uid types.UID) (cause string, retryAt time.Time) {
	volumes, ok := p.cfg.Volumes.(Blocker)
	if step, _ := p.Doing(uid); !ok || step != stepVolumes {
		return "", time.Time{}
	}
	return volumes.Blocked(uid)
}

// Doing implements [Explainer].
func (p *Pipeline) Doing(uid types.UID) (step string, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.steps[uid]
	return s.name, s.since
}
