package fakecri_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// watch reads events until ctx is done, and sends the stream's error.
func (n *node) watch(ctx context.Context, seen *[]string) <-chan error {
	events, ready, ended := make(chan *runtimeapi.ContainerEventResponse), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- n.GetContainerEvents(ctx, events, func(runtimeapi.RuntimeService_GetContainerEventsClient) { close(ready) })
		close(events)
	}()
	go func() {
		for e := range events {
			*seen = append(*seen, line(e))
		}
	}()
	<-ready
	return ended
}

func line(e *runtimeapi.ContainerEventResponse) string {
	kind := strings.TrimSuffix(strings.TrimPrefix(e.ContainerEventType.String(), "CONTAINER_"), "_EVENT")
	text := fmt.Sprintf("%s pod %s %v", kind, e.PodSandboxStatus.Metadata.Uid, e.PodSandboxStatus.State == runtimeapi.PodSandboxState_SANDBOX_READY)
	for _, c := range e.ContainersStatuses {
		text += fmt.Sprintf(" [%s %v]", c.Metadata.Name, strings.TrimPrefix(c.State.String(), "CONTAINER_"))
	}
	return text
}

// TestEventsOfALifecycle contains the events that containerd 2.4.2 sent.
func TestEventsOfALifecycle(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		ctx, cancel := context.WithCancel(n.ctx)
		defer cancel()
		var seen []string
		ended := n.watch(ctx, &seen)
		id, sandbox := n.started()
		job := n.created(sandbox, "a", "job", 0)
		require.NoError(n, n.StopContainer(n.ctx, id, 1))
		require.NoError(n, n.StopPodSandbox(n.ctx, sandbox))
		hasCode(n, codes.Unknown, n.StartContainer(n.ctx, job)) // a failed start is none
		require.NoError(n, n.RemovePodSandbox(n.ctx, sandbox))
		synctest.Wait()
		assert.Equal(n, []string{
			"CREATED pod a true",
			"STARTED pod a true",
			"CREATED pod a true [web CREATED]",
			"STARTED pod a true [web RUNNING]",
			"CREATED pod a true [web RUNNING] [job CREATED]",
			"STOPPED pod a true [web EXITED] [job CREATED]",
			"STOPPED pod a false [web EXITED] [job CREATED]",
			"DELETED pod a false [job EXITED]",
			"DELETED pod a false",
			"DELETED pod a false",
		}, seen)
		cancel()
		hasCode(n, codes.Canceled, <-ended)
	})
}

func TestASlowReaderOfEventsBlocksNothing(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		events, ended := make(chan *runtimeapi.ContainerEventResponse), make(chan error, 1)
		go func() { ended <- n.GetContainerEvents(n.ctx, events, nil) }()
		synctest.Wait()
		for range 2000 { // three events each, which are not read
			require.NoError(n, n.RemovePodSandbox(n.ctx, n.sandbox("a")))
		}
		select {
		case e := <-events: // the event being sent
			assert.Equal(n, "CREATED pod a true", line(e))
		case <-time.After(time.Second):
		}
		for done := false; !done; {
			select {
			case <-events:
			case err := <-ended:
				hasCode(n, codes.ResourceExhausted, err)
				done = true
			}
		}
	})
}

func TestEventsEndWithTheDaemon(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		var seen []string
		ended := n.watch(n.ctx, &seen)
		n.Down()
		hasCode(n, codes.Unavailable, <-ended)
		n.Up()
		ended = n.watch(n.ctx, &seen)
		n.sandbox("a")
		synctest.Wait()
		assert.Len(n, seen, 2)
		n.Down()
		<-ended
	})
}
