package podworker

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// An Inbox lets those know of each other who are made before the [Loop] and
// those that the Loop is made of: pleg tells of changes, and is itself what the
// Workers look at. Make it first, give its methods to them, and it to the Loop;
// so everything is built in the order of its parts, and nothing is set later.
//
// The zero value is ready. Its methods may be called from any goroutine, and
// don't block. Nothing is dropped: what was told of one pod many times before
// the Loop looked counts once.
type Inbox struct {
	// mu guards the fields below.
	mu      sync.Mutex
	changed map[types.UID]struct{}
	wake    chan struct{} // of the Loop; nil: there is none yet
	synced  bool
}

// PodChanged takes note that something about the pod changed in the runtime, or
// in what is granted to it: a pleg event, a probe result.
func (b *Inbox) PodChanged(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = map[types.UID]struct{}{}
	}
	b.changed[uid] = struct{}{}
	if b.wake != nil {
		signal(b.wake)
	}
}

// Synced reports whether every source of the Loop has said what it wants.
func (b *Inbox) Synced() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.synced
}

// open gives the Inbox to a Loop, which is woken when there is something in it.
func (b *Inbox) open(wake chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wake = wake
	if len(b.changed) > 0 {
		signal(wake)
	}
}

// take empties it.
func (b *Inbox) take() []types.UID {
	b.mu.Lock()
	defer b.mu.Unlock()
	uids := slices.Collect(maps.Keys(b.changed))
	clear(b.changed)
	return uids
}

func (b *Inbox) setSynced() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.synced = true
}
