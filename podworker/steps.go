package podworker

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// PipelineHooks are called synchronously on the goroutine on which the event occurs. They must
// not block. Each may be nil.
type PipelineHooks struct {
	// Rejected is called for each pod that fails because it was rejected
	// (kubelet_admission_rejections_total).
	Rejected func(*v1.Pod, runtime.Rejection)

	// Stepped is called after each step of a call. The steps of a call take all of its
	// time.
	Stepped func(StepInfo)
}

// A StepInfo describes a step of a call: "admit pod", "report status", "create cgroup",
// "create mirror pod", "mount volumes" or "sync containers" of Sync; "stop containers" or
// "inspect terminated containers" of Terminate; "unmount volumes" or "remove cgroup" of
// Cleanup. The runtime reports the steps of its own calls.
type StepInfo struct {
	UID        types.UID
	Step       string
	Begin, End time.Time
}

// Steps that occur more than once in the code.
const (
	stepMount   = "mount volumes"
	stepUnmount = "unmount volumes"
	stepStop    = "stop containers"
)

// An activeStep is the current step of a call in progress.
type activeStep struct {
	name  string
	since time.Time
}

// beginStep ends the current step of the call for the pod and begins the next; "" begins
// none.
func (p *Pipeline) beginStep(uid types.UID, name string) {
	now := time.Now()
	p.mu.Lock()
	before := p.steps[uid]
	if name == "" {
		delete(p.steps, uid)
	} else {
		p.steps[uid] = activeStep{name, now}
	}
	p.mu.Unlock()
	if before.name != "" && p.cfg.Hooks.Stepped != nil {
		p.cfg.Hooks.Stepped(StepInfo{UID: uid, Step: before.name, Begin: before.since, End: now})
	}
}

func (p *Pipeline) endSteps(uid types.UID) { p.beginStep(uid, "") }

// blockedReporter is the optional interface of Volumes.
type blockedReporter interface {
	Blocked(uid types.UID) (cause string, retryAt time.Time)
}

// Progress implements [ProgressReporter].
func (p *Pipeline) Progress(uid types.UID) Progress {
	p.mu.Lock()
	s := p.steps[uid]
	p.mu.Unlock()
	progress := Progress{Step: s.name, Since: s.since}
	if volumes, ok := p.cfg.Resources.Volumes.(blockedReporter); ok && (s.name == stepMount || s.name == stepUnmount) {
		progress.Err, progress.RetryAt = volumes.Blocked(uid)
	}
	return progress
}
