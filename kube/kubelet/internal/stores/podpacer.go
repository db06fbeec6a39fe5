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
	Notify func(uid types.UID)

	Mu      sync.Mutex         // guards changed
	Changed map[types.UID]bool // by UID notified less than healthPeriod ago: whether it has changed since
}

func (p *PodPacer) Change(uid types.UID) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if _, recent := p.Changed[uid]; recent {
		p.Changed[uid] = true
		return
	}
	p.notifyLocked(uid)
}

func (p *PodPacer) notifyLocked(uid types.UID) {
	if p.Changed == nil {
		p.Changed = map[types.UID]bool{}
	}
	p.Changed[uid] = false
	p.Notify(uid)
	time.AfterFunc(healthPeriod, func() {
		p.Mu.Lock()
		defer p.Mu.Unlock()
		again := p.Changed[uid]
		delete(p.Changed, uid)
		if again {
			p.notifyLocked(uid)
		}
	})
}
