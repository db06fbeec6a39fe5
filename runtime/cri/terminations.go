package cri

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// terminations caches the statuses of exited containers. They no longer change, and
// they are the majority of the containers of a crashing pod.
type terminations struct {
	// mu guards pods: by UID, the exited containers of the last inspection, by bare
	// ID.
	mu   sync.Mutex
	pods map[types.UID]map[string]runtime.ContainerStatus
}

func newTerminations() *terminations {
	return &terminations{pods: map[types.UID]map[string]runtime.ContainerStatus{}}
}

// messageDelay is how long the termination message of an exited container may still
// change: the runtime copies the container's output to its log.
const messageDelay = 10 * time.Second

// get returns the cached status of an exited container.
func (e *terminations) get(uid types.UID, id string) (runtime.ContainerStatus, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.pods[uid][id]
	return c, ok
}

// update replaces the cached statuses of a pod with those of a new inspection.
func (e *terminations) update(st *runtime.PodStatus) {
	var found map[string]runtime.ContainerStatus
	for _, c := range st.Containers {
		if c.State == runtime.ContainerExited && st.ObservedAt.Sub(c.FinishedAt) > messageDelay {
			if found == nil {
				found = map[string]runtime.ContainerStatus{}
			}
			found[runtimeID(c.ID)] = c
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

// retain drops the cached statuses of removed pods.
func (e *terminations) retain(keep func(types.UID) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.pods, func(uid types.UID, _ map[string]runtime.ContainerStatus) bool { return !keep(uid) })
}
