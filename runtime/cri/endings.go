package cri

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Endings remember what was read of containers that have exited: nothing of
// that changes any more, and they are most of what a pod that crashes holds
// (lq-32).
type endings struct {
	// mu guards pods: by UID, the exited containers that the last look at the
	// pod found, by bare ID.
	mu   sync.Mutex
	pods map[types.UID]map[string]runtime.ContainerStatus
}

func newEndings() *endings {
	return &endings{pods: map[types.UID]map[string]runtime.ContainerStatus{}}
}

// settled is how long after its end a container's last words may still come in:
// the runtime copies what it wrote to its log.
const settled = 10 * time.Second

// known returns what was read of a container before.
func (e *endings) known(uid types.UID, id string) (runtime.ContainerStatus, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.pods[uid][id]
	return c, ok
}

// seen remembers what can be remembered of a look at a pod, and forgets what it
// did not find.
func (e *endings) seen(st *runtime.PodStatus) {
	var found map[string]runtime.ContainerStatus
	for _, c := range st.Containers {
		if c.State == runtime.ContainerExited && st.ObservedAt.Sub(c.FinishedAt) > settled {
			if found == nil {
				found = map[string]runtime.ContainerStatus{}
			}
			found[bare(c.ID)] = c
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if found == nil {
		delete(e.pods, st.UID)
		return
	}
	e.pods[st.UID] = found
}

// forget drops what is remembered of the pods that are gone.
func (e *endings) forget(gone func(types.UID) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.pods, func(uid types.UID, _ map[string]runtime.ContainerStatus) bool { return gone(uid) })
}
