package fakecri_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

func TestAttachReceivesNewOutputOnly(t *testing.T) {
	b := fake.Behavior{Exit: &fake.Exit{After: 10500 * time.Millisecond}, Logs: []fake.LogLine{
		{Text: "starting", After: time.Second},
		{Text: "tick %d", After: time.Second, Every: time.Second, Times: 5},
		{Text: "oops", After: time.Second, Err: true},
	}}
	on(t, does(b), func(n *node) {
		id, _ := n.started()
		time.Sleep(3500 * time.Millisecond)
		var out, errOut, both bytes.Buffer
		ended := make(chan error, 2)
		typed, _ := io.Pipe() // an input that never ends
		defer typed.Close()
		go func() {
			ended <- n.StreamAttach(n.ctx, id, runtime.Streams{Stdin: typed, Stdout: &out, Stderr: &errOut})
		}()
		go func() { ended <- n.StreamAttach(n.ctx, id, runtime.Streams{Stdout: &both, TTY: true}) }()
		synctest.Wait()
		require.NoError(n, <-ended, "it ends with the container")
		require.NoError(n, <-ended)
		assert.Equal(n, "tick 3\ntick 4\ntick 5\n", out.String())
		assert.Equal(n, "oops\n", errOut.String())
		assert.Equal(n, "tick 3\ntick 4\ntick 5\noops\n", both.String())
		n.exited(id, 0, "Completed", 0)
		hasCode(n.T, codes.Unknown, n.StreamAttach(n.ctx, id, runtime.Streams{}))
		hasCode(n.T, codes.NotFound, n.StreamAttach(n.ctx, "absent", runtime.Streams{}))
	})
}

func TestAttachEndsWithItsContext(t *testing.T) {
	on(t, does(fake.Behavior{}), func(n *node) {
		id, _ := n.started()
		ctx, cancel := context.WithTimeout(n.ctx, time.Minute)
		defer cancel()
		hasCode(n.T, codes.DeadlineExceeded, n.StreamAttach(ctx, id, runtime.Streams{}))
	})
}

func TestForwardedPortsReachTheirServer(t *testing.T) {
	b := fake.Behavior{
		Endpoints: []fake.Endpoint{{Port: 8080, HTTP: true, ReadyAfter: time.Minute}},
		Forward: func(_ context.Context, port int32, conn io.ReadWriteCloser) error {
			if port != 5432 {
				return fmt.Errorf("no listener at %d", port)
			}
			_, err := fmt.Fprintf(conn, "port %d", port)
			return err
		},
	}
	on(t, does(b), func(n *node) {
		id, sandbox := n.started()
		get := func() int {
			ours, theirs := net.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- n.StreamPortForward(n.ctx, sandbox, 8080, theirs) }()
			req, err := http.NewRequest(http.MethodGet, "http://x/", nil)
			require.NoError(n, err)
			req.Close = true
			require.NoError(n, req.Write(ours))
			resp, err := http.ReadResponse(bufio.NewReader(ours), req)
			require.NoError(n, err)
			resp.Body.Close()
			ours.Close()
			<-ended // whether the last words could be written is luck
			return resp.StatusCode
		}
		assert.Equal(n, http.StatusServiceUnavailable, get())
		time.Sleep(2 * time.Minute)
		assert.Equal(n, http.StatusOK, get())

		forward := func(port int32) (string, error) {
			ours, theirs := net.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- n.StreamPortForward(n.ctx, sandbox, port, theirs) }()
			received, err := io.ReadAll(ours)
			require.NoError(n, err, "it closes the connection")
			return string(received), <-ended
		}
		received, err := forward(5432)
		require.NoError(n, err)
		assert.Equal(n, "port 5432", received)
		_, err = forward(1)
		hasCode(n.T, codes.Unknown, err)
		assert.ErrorContains(n, err, "no listener at 1")

		require.NoError(n, n.StopContainer(n.ctx, id, 0))
		_, err = forward(8080)
		assert.ErrorContains(n, err, "connection refused", "nothing runs")
		_, err = n.Runtime.PortForward(n.ctx, &runtimeapi.PortForwardRequest{PodSandboxId: sandbox})
		hasCode(n.T, codes.Unimplemented, err)

		require.NoError(n, n.StopPodSandbox(n.ctx, sandbox))
		_, err = forward(8080)
		hasCode(n.T, codes.Unknown, err)
		assert.ErrorContains(n, err, "not ready")
		_, err = n.Runtime.PortForward(n.ctx, &runtimeapi.PortForwardRequest{PodSandboxId: sandbox})
		hasCode(n.T, codes.Unknown, err)
		require.NoError(n, n.RemovePodSandbox(n.ctx, sandbox))
		_, err = forward(8080)
		hasCode(n.T, codes.NotFound, err)
	})
}

// An idle connection ends with its caller, and with its container.
func TestAForwardEndsWithItsContextAndItsContainer(t *testing.T) {
	on(t, does(fake.Behavior{Endpoints: []fake.Endpoint{{Port: 80}}}), func(n *node) {
		id, sandbox := n.started()
		ctx, cancel := context.WithTimeout(n.ctx, time.Minute)
		defer cancel()
		_, theirs := net.Pipe()
		hasCode(n.T, codes.DeadlineExceeded, n.StreamPortForward(ctx, sandbox, 80, theirs))

		time.AfterFunc(time.Minute, func() { assert.NoError(n, n.StopContainer(n.ctx, id, 0)) })
		_, theirs = net.Pipe()
		assert.NoError(n, n.StreamPortForward(n.ctx, sandbox, 80, theirs))
	})
}
