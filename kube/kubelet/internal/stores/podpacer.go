package stores

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// healthPeriod is the minimum time between two syncs of a pod for changed health: each of several
// drivers may report each change of a flapping device, and each changed status is a request.
const healthPeriod = time.Second

// A PodPacer calls notify for a pod that has changed: at once, and then once per healthPeriod while it
// changes. The last change is always followed by a call. notify must not block.
type PodPacer struct {
	notify func(uid types.UID)

	mu      sync.Mutex         // guards changed
	changed map[types.UID]bool // by UID notified less than healthPeriod ago: whether it has changed since
}

// NewPodPacer returns a PodPacer that calls notify.
func NewPodPacer(notify func(uid types.UID)) *PodPacer {
	return &PodPacer{notify: notify, changed: map[types.UID]bool{}}
}

// Change reports that a pod has changed.
func (p *PodPacer) Change(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, recent := p.changed[uid]; recent {
		p.changed[uid] = true
		return
	}
	p.notifyLocked(uid)
}

func (p *PodPacer) notifyLocked(uid types.UID) {
	p.changed[uid] = false
	p.notify(uid)
	time.AfterFunc(healthPeriod, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		again := p.changed[uid]
		delete(p.changed, uid)
		if again {
			p.notifyLocked(uid)
		}
	})
}
