package kubelet

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// A queue carries notifications against the order of construction: to a component that is
// constructed after those that notify it. Several equal ones count once until they are
// delivered. The zero value is ready for use.
type queue[T comparable] struct {
	mu      sync.Mutex // guards pending and wake
	pending map[T]struct{}
	wake    chan struct{} // nil: nothing was added yet
}

// add queues v. It does not block.
func (q *queue[T]) add(v T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pending == nil {
		q.pending = map[T]struct{}{}
	}
	q.pending[v] = struct{}{}
	select {
	case q.wakeLocked() <- struct{}{}:
	default:
	}
}

func (q *queue[T]) wakeLocked() chan struct{} {
	if q.wake == nil {
		q.wake = make(chan struct{}, 1)
	}
	return q.wake
}

func (q *queue[T]) take() map[T]struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.pending
	q.pending = nil
	return taken
}

// deliver returns a component that calls to for each notification, in no particular order.
func (q *queue[T]) deliver(to func(T)) component {
	q.mu.Lock()
	wake := q.wakeLocked()
	q.mu.Unlock()
	return func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-wake:
				for v := range q.take() {
					to(v)
				}
			}
		}
	}
}

// A notice is a queue without values.
type notice struct{ queue[struct{}] }

func (n *notice) notify() { n.add(struct{}{}) }

func (n *notice) deliver(to func()) component { return n.queue.deliver(func(struct{}) { to() }) }

// An objectName is that of a Secret, ConfigMap or other object that volumes read.
type objectName struct{ kind, namespace, name string }

// The queues of a kubelet.
type queues struct {
	objects  queue[objectName] // changed objects, to the volume manager
	node     notice            // the node status has changed, to the manager of the Node object
	statuses notice            // the API server is reachable again, to the status manager
	pods     queue[types.UID]  // pods with another spec or status, to the pods API
}
