package sim

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A truth is what is so at one moment of a run, known to the laws and to no
// agent. It is made of the entries of the trace.
type truth struct {
	pods map[types.UID]*podTruth
}

// A podTruth is what is so of one UID.
type podTruth struct {
	uid  types.UID
	name string

	wanted   *v1.Pod // what its source has; nil: nothing
	static   bool
	lives    int // how many times it began to be wanted
	said     *v1.PodStatus
	instance map[string]*runtime.ContainerStatus // by ID; those that have not been removed
	sandbox  map[string]*runtime.SandboxStatus
}

func newTruth() *truth { return &truth{pods: map[types.UID]*podTruth{}} }

// pod returns what is so of a UID, made if need be.
func (t *truth) pod(uid types.UID) *podTruth {
	p := t.pods[uid]
	if p == nil {
		p = &podTruth{uid: uid, instance: map[string]*runtime.ContainerStatus{}, sandbox: map[string]*runtime.SandboxStatus{}}
		t.pods[uid] = p
	}
	return p
}

// take makes an entry part of the truth.
func (t *truth) take(e *Entry) {
	if e.UID == "" {
		return
	}
	p := t.pod(e.UID)
	if e.Pod != "" {
		p.name = e.Pod
	}
	switch e.Kind {
	case Wanted:
		p.wanted, p.static = e.Object, e.Static
		p.lives++
		p.said = nil
	case Changed, Deleting:
		p.wanted = e.Object
	case Gone:
		p.wanted = nil
	case Started, Exited:
		p.instance[e.Container.ID] = e.Container
	case Removed:
		delete(p.instance, e.Container.ID)
	case SandboxReady, SandboxStopped:
		p.sandbox[e.Sandbox.ID] = e.Sandbox
	case SandboxRemoved:
		delete(p.sandbox, e.Sandbox.ID)
	case Said:
		p.said = e.Status
	}
}

// running returns the instances that run, by ID.
func (p *podTruth) running() (out []*runtime.ContainerStatus) {
	for _, id := range slices.Sorted(maps.Keys(p.instance)) {
		if c := p.instance[id]; c.State == runtime.ContainerRunning {
			out = append(out, c)
		}
	}
	return out
}

// ready reports whether a sandbox of it is ready.
func (p *podTruth) ready() bool {
	for _, sb := range p.sandbox {
		if sb.State == runtime.SandboxReady {
			return true
		}
	}
	return false
}
