//go:build linux || darwin

package process_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// watch streams events until the test ends.
func (n *node) watch() (<-chan *runtimeapi.ContainerEventResponse, <-chan error) {
	n.t.Helper()
	events := make(chan *runtimeapi.ContainerEventResponse)
	ended := make(chan error, 1)
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(n.t.Context())
	n.t.Cleanup(cancel)
	go func() {
		ended <- n.GetContainerEvents(ctx, events, func(runtimeapi.RuntimeService_GetContainerEventsClient) { close(ready) })
	}()
	<-ready
	return events, ended
}

func TestEventsOfASandboxAndItsContainers(t *testing.T) {
	n := newNode(t)
	events, _ := n.watch()
	type reported struct {
		id   string
		kind runtimeapi.ContainerEventType
	}
	next := func() (reported, *runtimeapi.ContainerEventResponse) {
		select {
		case e := <-events:
			return reported{e.GetContainerId(), e.GetContainerEventType()}, e
		case <-time.After(patience):
			require.Fail(t, "no event")
			return reported{}, nil
		}
	}
	expect := func(id string, kind runtimeapi.ContainerEventType) *runtimeapi.ContainerEventResponse {
		t.Helper()
		got, e := next()
		require.Equal(t, reported{id, kind}, got)
		require.NotNil(t, e.GetPodSandboxStatus())
		return e
	}
	const (
		created = runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT
		started = runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT
		stopped = runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT
		deleted = runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT
	)
	s := n.sandbox("pod")
	expect(s, created)
	expect(s, started)
	cfg := sh("app", "while ! test -e go; do sleep 0.005; done; exit 3")
	cfg.WorkingDir = t.TempDir()
	id := n.start(s, cfg)
	expect(id, created)
	expect(id, started)
	require.NoError(t, os.WriteFile(filepath.Join(cfg.WorkingDir, "go"), nil, 0o600))
	// The exit is reported without any call that reads the status.
	e := expect(id, stopped)
	require.Len(t, e.GetContainersStatuses(), 1)
	st := e.GetContainersStatuses()[0]
	assert.EqualValues(t, 3, st.GetExitCode())
	t.Logf("exit reported after %v", time.Duration(e.GetCreatedAt()-st.GetFinishedAt()))
	require.NoError(t, n.RemovePodSandbox(t.Context(), s))
	expect(s, stopped)
	expect(id, deleted)
	expect(s, deleted)
}

func TestClosingEndsEventStreamsAndLeavesNoGoroutine(t *testing.T) {
	before := goruntime.NumGoroutine()
	n := newNode(t)
	_, ended := n.watch()
	s := n.sandbox("pod")
	n.start(s, sh("app", "sleep 1000"))
	n.exited(n.start(s, sh("short", "true")))
	require.NoError(t, n.Close(t.Context()))
	assert.Equal(t, codes.Unavailable, status.Code(<-ended))
	eventually(t, "goroutines end", func() bool { return goruntime.NumGoroutine() <= before })
}

func TestARunningContainerCostsNoGoroutine(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("pod")
	before := goruntime.NumGoroutine()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		n.start(s, sh(name, "sleep 1000"))
	}
	eventually(t, "goroutines of the starts end", func() bool { return goruntime.NumGoroutine() <= before })
}

func TestASlowReaderOfEventsIsEnded(t *testing.T) {
	n := newNode(t)
	events, ended := n.watch()
	for i := range 1100 { // four events each, which are not read
		require.NoError(t, n.RemovePodSandbox(t.Context(), n.sandbox(fmt.Sprint("pod-", i))))
	}
	for read := 0; ; read++ {
		select {
		case <-events:
			require.Less(t, read, 4400)
		case err := <-ended:
			assert.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
			return
		case <-time.After(patience):
			require.Fail(t, "it waits")
		}
	}
}
