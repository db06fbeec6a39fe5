package podworker

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// nameQueues orders the static pods that share a full name: one runs at a time, in the
// order in which they were added. A changed manifest is a pod with a new UID and the same
// name, so the queue keeps the two from running concurrently.
type nameQueues map[string][]types.UID

// push appends uid to the queue for name, unless it is in it.
func (q nameQueues) push(name string, uid types.UID) {
	if !slices.Contains(q[name], uid) {
		q[name] = append(q[name], uid)
	}
}

// isFirst reports whether uid is the first in the queue.
func (q nameQueues) isFirst(name string, uid types.UID) bool {
	return len(q[name]) > 0 && q[name][0] == uid
}

// first returns the first UID, "" if the queue is empty.
func (q nameQueues) first(name string) types.UID {
	if len(q[name]) == 0 {
		return ""
	}
	return q[name][0]
}

// remove removes uid from the queue and returns the UID that is first now, "" if there is
// none.
func (q nameQueues) remove(name string, uid types.UID) types.UID {
	queue := slices.DeleteFunc(q[name], func(u types.UID) bool { return u == uid })
	if len(queue) == 0 {
		delete(q, name)
		return ""
	}
	q[name] = queue
	return queue[0]
}
