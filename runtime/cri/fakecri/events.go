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

// publishLocked queues an event for all readers. It does not block.
func (r *Runtime) publishLocked(s *sandbox, kind runtimeapi.ContainerEventType, subject string) {
	if !r.events.HasReaders() {
		return
	}
	e := &runtimeapi.ContainerEventResponse{
		ContainerId: subject, ContainerEventType: kind, CreatedAt: now(), PodSandboxStatus: s.status(),
	}
	for _, c := range s.containers {
		e.ContainersStatuses = append(e.ContainersStatuses, c.status())
	}
	r.events.Send(e)
}

// GetContainerEvents sends an event, with the state of the pod at that time, for each
// sandbox and container that is created, started, stopped or removed, until ctx is done
// or the daemon goes down. It does not close the channel. The callback, which may be nil,
// is called with nil (there is no stream) as soon as no further event can be missed.
//
// It returns ResourceExhausted to a reader that is 4096 events behind.
func (r *Runtime) GetContainerEvents(ctx context.Context, containerEventsCh chan *runtimeapi.ContainerEventResponse, connectionEstablishedCallback func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	return act(ctx, r, fake.Call{Method: "GetContainerEvents"}, func(ctx context.Context) error {
		if err := r.begin(ctx); err != nil {
			return err
		}
		events := r.events.Open(eventsMax)
		r.mu.Unlock()
		defer events.Close()
		if connectionEstablishedCallback != nil {
			connectionEstablishedCallback(nil)
		}
		for {
			select {
			case <-ctx.Done():
				return ended(ctx)
			case <-events.More():
			}
			queue, late := events.Take()
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
