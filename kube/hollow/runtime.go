package hollow

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/logread"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A served is the runtime of a node as its port serves it: with logs, attach and port forwarding
// as the behaviors of containers specify them.
type served struct{ *runtimetest.Runtime }

var (
	_ runtime.LogReader     = served{}
	_ runtime.Attacher      = served{}
	_ runtime.PortForwarder = served{}
)

// running returns an instance of a container that runs.
func (r served) running(id string) (runtimetest.Instance, error) {
	i, ok := r.Instance(id)
	if !ok {
		return i, fmt.Errorf("hollow: container %s: %w", id, runtime.ErrNotFound)
	}
	if i.Status.State != runtime.ContainerRunning {
		return i, fmt.Errorf("hollow: container %s is not running", id)
	}
	return i, nil
}

// LogPath implements runtime.LogReader. The path is the ID of the container, which logs reads.
func (r served) LogPath(_ context.Context, id string) (string, error) {
	if _, ok := r.Instance(id); !ok {
		return "", fmt.Errorf("hollow: log of container %s: %w", id, runtime.ErrNotFound)
	}
	return id, nil
}

// Attach implements runtime.Attacher. A container without Logs echoes its input.
func (r served) Attach(ctx context.Context, id string, s runtime.Streams) error {
	i, err := r.running(id)
	if err != nil {
		return err
	}
	s = fake.Streams(s)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-i.Exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	switch {
	case i.Behavior.Attach != nil:
		err = i.Behavior.Attach(ctx, s)
	case len(i.Behavior.Logs) > 0:
		err = r.follow(ctx, i, logread.Request{Since: time.Now(), Follow: true}, func(_ time.Time, text string, stderr bool) error {
			w := s.Stdout
			if stderr {
				w = s.Stderr
			}
			_, err := io.WriteString(w, text+"\n")
			return err
		})
	default:
		err = echo(ctx, s.Stdout, s.Stdin)
	}
	select {
	case <-i.Exited:
		return nil
	default:
		return err
	}
}

// echo copies until the input ends or ctx is done. A read in progress then ends with the
// connection of the client.
func echo(ctx context.Context, out io.Writer, in io.Reader) error {
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(out, in)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// PortForward implements runtime.PortForwarder. An endpoint answers HTTP requests, or echoes.
func (r served) PortForward(ctx context.Context, uid types.UID, port int32, conn io.ReadWriteCloser) error {
	defer func() { _ = conn.Close() }() // it may be closed already
	status, err := r.PodStatus(ctx, uid)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	for _, c := range status.Containers {
		i, err := r.running(c.ID)
		if err != nil {
			continue
		}
		for _, e := range i.Behavior.Endpoints {
			if e.Port == port && (e.HTTP || e.Ready(time.Since(c.StartedAt))) {
				if e.HTTP {
					return serveHTTP(conn, e, c.StartedAt)
				}
				_, err := io.Copy(conn, conn)
				return err
			}
		}
		if i.Behavior.Forward != nil {
			return i.Behavior.Forward(ctx, port, conn)
		}
	}
	return fmt.Errorf("hollow: connect to port %d of pod %s: connection refused", port, uid)
}

// serveHTTP answers requests with the text of the status until the client closes the connection.
func serveHTTP(conn io.ReadWriter, e fake.Endpoint, started time.Time) error {
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return nil // the connection was closed
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return err
		}
		resp := &http.Response{ProtoMajor: 1, ProtoMinor: 1, StatusCode: http.StatusOK, Request: req, Close: req.Close, Header: http.Header{"Content-Type": {"text/plain"}}}
		if !e.Ready(time.Since(started)) {
			resp.StatusCode = http.StatusServiceUnavailable
		}
		text := http.StatusText(resp.StatusCode) + "\n" // so that a client that loses data notices
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		if err := resp.Write(conn); err != nil || req.Close {
			return err
		}
	}
}
