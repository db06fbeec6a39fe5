package fakecri

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// eventsMax is the maximum number of queued events per reader. Beyond it the stream is
// terminated.
const eventsMax = 4096

// A watcher is one call of GetContainerEvents. Runtime.mu guards queue and late.
type watcher struct {
	queue []*runtimeapi.ContainerEventResponse
	late  bool
	more  chan struct{} // of one element: there is something in queue, or it is late
}

// publishLocked queues an event for all watchers. It does not block.
func (r *Runtime) publishLocked(s *sandbox, kind runtimeapi.ContainerEventType, subject string) {
	if len(r.watchers) == 0 {
		return
	}
	e := &runtimeapi.ContainerEventResponse{
		ContainerId: subject, ContainerEventType: kind, CreatedAt: now(), PodSandboxStatus: s.status(),
	}
	for _, c := range s.containers {
		e.ContainersStatuses = append(e.ContainersStatuses, c.status())
	}
	for w := range r.watchers {
		if len(w.queue) >= eventsMax {
			w.queue, w.late = nil, true
			delete(r.watchers, w)
		} else {
			w.queue = append(w.queue, e)
		}
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
}

// GetContainerEvents sends an event, with the state of the pod at that time, for each
// sandbox and container that is created, started, stopped or removed, until ctx is done
// or the daemon goes down. It does not close the channel. The callback, which may be nil,
// is called with nil (there is no stream) as soon as no further event can be missed.
//
// It returns ResourceExhausted to a reader that is 4096 events behind.
func (r *Runtime) GetContainerEvents(ctx context.Context, containerEventsCh chan *runtimeapi.ContainerEventResponse, connectionEstablishedCallback func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	return act(ctx, r, fake.Call{Method: "GetContainerEvents"}, func(ctx context.Context) error {
		w := &watcher{more: make(chan struct{}, 1)}
		if err := r.begin(ctx); err != nil {
			return err
		}
		r.watchers[w] = struct{}{}
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			delete(r.watchers, w)
			r.mu.Unlock()
		}()
		if connectionEstablishedCallback != nil {
			connectionEstablishedCallback(nil)
		}
		for {
			select {
			case <-ctx.Done():
				return ended(ctx)
			case <-w.more:
			}
			queue, late := r.take(w)
			for _, e := range queue {
				select {
				case containerEventsCh <- e:
				case <-ctx.Done():
					return ended(ctx)
				}
			}
			if late {
				return status.Errorf(codes.ResourceExhausted, "fakecri: reader of container events is more than %d events behind", eventsMax)
			}
		}
	})
}

// take returns the queued events of a watcher.
func (r *Runtime) take(w *watcher) ([]*runtimeapi.ContainerEventResponse, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue := w.queue
	w.queue = nil
	return queue, w.late
}
