package record

import (
	"context"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// GetContainerEvents records each event before it is delivered, and the end of the stream.
func (s runtimeService) GetContainerEvents(ctx context.Context, events chan *runtimeapi.ContainerEventResponse, connected func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	return recordDo(s.r, "GetContainerEvents", &runtimeapi.GetEventsRequest{}, func() error {
		recorded := make(chan *runtimeapi.ContainerEventResponse)
		ended := make(chan error, 1)
		go func() { ended <- s.RuntimeService.GetContainerEvents(ctx, recorded, connected) }()
		for { // until the stream has ended, so that its sender does not block forever
			select {
			case e := <-recorded:
				s.r.event(e)
				select {
				case events <- e:
				case <-ctx.Done():
				}
			case err := <-ended:
				return err
			}
		}
	})
}

func (r *Recorder) event(m proto.Message) {
	event := encodeWire(m)
	r.add(len(event.data), func(e *encoder) Frame { return Frame{Event: &Event{Message: e.message(event)}} })
}
