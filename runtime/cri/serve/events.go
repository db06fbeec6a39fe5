package serve

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// GetContainerEvents sends events until the client has disconnected or the service
// returns. The header is sent when the service reports that no further event can be
// missed.
func (s *runtimeService) GetContainerEvents(_ *runtimeapi.GetEventsRequest, to grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	ctx, cancel := context.WithCancel(to.Context())
	defer cancel()
	events := make(chan *runtimeapi.ContainerEventResponse)
	established, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- s.runtime.GetContainerEvents(ctx, events, func(runtimeapi.RuntimeService_GetContainerEventsClient) {
			established <- struct{}{}
		})
	}()
	var lost error // error of the client
	for {
		select {
		case <-established:
			lost = to.SendHeader(metadata.MD{})
		case event := <-events:
			select {
			case <-established: // select does not preserve the order
				lost = to.SendHeader(metadata.MD{})
			default:
			}
			if lost == nil { // else the event is dropped, so that the service does not block
				lost = to.Send(event)
			}
		case err := <-ended:
			if lost != nil {
				return lost
			}
			return err
		}
		if lost != nil {
			cancel()
		}
	}
}
