package stores

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// A Queue carries notifications against the order of construction: to a component that is
// constructed after those that notify it. Several equal ones count once until they are
// delivered. The zero value is ready for use.
type Queue[T comparable] struct {
	mu      sync.Mutex // guards pending and wake
	pending map[T]struct{}
	wake    chan struct{} // nil: nothing was added yet
}

// Add queues v. It does not block.
func (q *Queue[T]) Add(v T) {
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

func (q *Queue[T]) wakeLocked() chan struct{} {
	if q.wake == nil {
		q.wake = make(chan struct{}, 1)
	}
	return q.wake
}

func (q *Queue[T]) take() map[T]struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.pending
	q.pending = nil
	return taken
}

// Deliver returns a component that calls to for each notification, in no particular order.
func (q *Queue[T]) Deliver(to func(T)) Component {
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
type notice struct{ Queue[struct{}] }

func (n *notice) Notify() { n.Add(struct{}{}) }

func (n *notice) Deliver(to func()) Component { return n.Queue.Deliver(func(struct{}) { to() }) }

// An ObjectName names a Secret, ConfigMap or other object that volumes read.
type ObjectName struct{ Kind, Namespace, Name string }

// The Queues of a kubelet.
type Queues struct {
	Objects  Queue[ObjectName] // changed objects, to the volume manager
	Node     notice            // the node status has changed, to the manager of the Node object
	Statuses notice            // the API server is reachable again, to the status manager
	Pods     Queue[types.UID]  // pods with another spec or status, to the pods API
}
