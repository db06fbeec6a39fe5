package registry

import (
	"sync"
	"time"
)

// healthPeriod is the minimum time between two notifications of changed health of a driver: a
// driver may report each change of a flapping device.
const healthPeriod = time.Second

// A pacer calls notify for a key that has changed: at once, and then once per healthPeriod while it
// changes. The last change is always followed by a call. notify must not block.
type pacer struct {
	notify func(key string)

	mu      sync.Mutex // guards the fields below
	ended   bool
	changed map[string]bool // by key notified less than healthPeriod ago: whether it has changed since
}

func (p *pacer) change(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, recent := p.changed[key]; recent {
		p.changed[key] = true
		return
	}
	p.notifyLocked(key)
}

func (p *pacer) notifyLocked(key string) {
	if p.ended {
		return
	}
	if p.changed == nil {
		p.changed = map[string]bool{}
	}
	p.changed[key] = false
	p.notify(key)
	time.AfterFunc(healthPeriod, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		again := p.changed[key]
		delete(p.changed, key)
		if again {
			p.notifyLocked(key)
		}
	})
}

// end makes later changes have no effect.
func (p *pacer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}
