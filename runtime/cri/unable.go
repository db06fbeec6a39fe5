package cri

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Unable is, by pod, the resize that the runtime has no means for. It is kept in
// memory only: the next agent asks once more.
type unable struct {
	mu   sync.Mutex
	pods map[types.UID]string // guarded by mu
}

func newUnable() *unable { return &unable{pods: map[types.UID]string{}} }

// of returns the resize that can't be done, in words; "" if there is none.
func (u *unable) of(uid types.UID) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pods[uid]
}

func (u *unable) note(uid types.UID, resize string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pods[uid] = resize
}

// forget drops what is known of the pods that are gone.
func (u *unable) forget(gone func(types.UID) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.pods, func(uid types.UID, _ string) bool { return gone(uid) })
}
