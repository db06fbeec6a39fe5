package podworker

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// An Inbox breaks the construction cycle between the [Loop] and the subsystems that notify it
// of changed pods and are constructed before it: pleg.Generator reports changes and is also
// the StatusCache of the Workers. Construct the Inbox first, pass its methods to the
// subsystems, and pass it to the Loop.
//
// The zero value is ready for use. Safe for concurrent use; its methods do not block.
// Notifications are not dropped; several for one pod before the Loop takes them count once.
type Inbox struct {
	// mu guards the fields below.
	mu      sync.Mutex
	changed map[types.UID]struct{}
	wake    chan struct{} // of the Loop; nil: there is none yet
	synced  bool
}

// PodChanged reports that something about the pod has changed in the runtime, its probe
// results or its allocated resources.
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

// Synced reports whether every source of the Loop has synced.
func (b *Inbox) Synced() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.synced
}

// open connects the Inbox to a Loop, which wake notifies.
func (b *Inbox) open(wake chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wake = wake
	if len(b.changed) > 0 {
		signal(wake)
	}
}

// take returns the changed pods and clears them.
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
