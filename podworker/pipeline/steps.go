package pipeline

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
)

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
func (p *Pipeline) Progress(uid types.UID) podworker.Progress {
	p.mu.Lock()
	s := p.steps[uid]
	p.mu.Unlock()
	progress := podworker.Progress{Step: s.name, Since: s.since}
	if volumes, ok := p.cfg.Resources.Volumes.(blockedReporter); ok && (s.name == stepMount || s.name == stepUnmount) {
		progress.Err, progress.RetryAt = volumes.Blocked(uid)
	}
	return progress
}
