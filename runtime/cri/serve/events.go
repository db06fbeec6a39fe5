package serve

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// GetContainerEvents passes events on until the client is gone or the service
// ends it. The header is sent when the service says that no event can be missed
// any more.
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
	var lost error // the client is
	for {
		select {
		case <-established:
			lost = to.SendHeader(metadata.MD{})
		case event := <-events:
			select {
			case <-established: // select does not know which came first
				lost = to.SendHeader(metadata.MD{})
			default:
			}
			if lost == nil { // else only so that nobody waits for ever to hand it over
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
