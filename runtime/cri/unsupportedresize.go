package cri

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// unsupportedResizes caches, by pod, the resize that the runtime does not support, so
// that it is not repeated. It is not stored: the next agent tries once more.
type unsupportedResizes struct {
	mu   sync.Mutex
	pods map[types.UID]string // guarded by mu
}

func newUnsupportedResizes() *unsupportedResizes {
	return &unsupportedResizes{pods: map[types.UID]string{}}
}

// get returns the unsupported resize as text; "" if there is none.
func (u *unsupportedResizes) get(uid types.UID) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pods[uid]
}

func (u *unsupportedResizes) set(uid types.UID, resize string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pods[uid] = resize
}

// retain drops the entries of removed pods.
func (u *unsupportedResizes) retain(keep func(types.UID) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.pods, func(uid types.UID, _ string) bool { return !keep(uid) })
}
