package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime"
)

func serveHTTP(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for begun := time.Now(); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > patience {
			buf := make([]byte, 1<<20)
			t.Fatalf("not within %v: %s\n%s", patience, what, buf[:goruntime.Stack(buf, true)])
		}
	}
}

// nothingLeft waits until no goroutine is at a stream any more.
func nothingLeft(t testing.TB) {
	t.Helper()
	eventually(t, "no goroutine of a stream is left", func() bool {
		buf := make([]byte, 8<<20)
		all := string(buf[:goruntime.Stack(buf, true)])
		for _, of := range []string{"streamserver", "kube/server.(*Server)", "cri-streaming", "spdystream", "wsstream", "switchProtocolCopier"} {
			if strings.Contains(all, of) {
				return false
			}
		}
		return true
	})
}

// Whatever a stream does, it is notified when its client disconnects, or the server
// stops.
func TestAStreamEndsWithItsClientAndWithTheServer(t *testing.T) {
	for how, begin := range runtimes {
		t.Run(how, func(t *testing.T) {
			running, over := make(chan string), make(chan string)
			until := func(ctx context.Context, what string) error {
				running <- what
				<-ctx.Done()
				over <- what
				return ctx.Err()
			}
			// They write hello, so that the client has been notified that its streams exist:
			// cut off before, client-go's SPDY waits for that for half a minute.
			hello := []byte("hello")
			s := onSite(t, begin(t, program{
				exec: func(ctx context.Context, _ []string, s runtime.Streams) (int32, error) {
					_, _ = s.Stdout.Write(hello)
					return 0, until(ctx, "exec")
				},
				attach: func(ctx context.Context, s runtime.Streams) error {
					_, _ = s.Stdout.Write(hello)
					return until(ctx, "attach")
				},
				forward: func(ctx context.Context, _ int32, conn io.ReadWriteCloser) error {
					_, _ = conn.Write(hello)
					return until(ctx, "forward")
				},
			}), nil)
			open := func(client, what string) (gone func()) {
				ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
				ended := make(chan struct{})
				reader, writer := io.Pipe()
				go func() {
					defer close(ended)
					writer.CloseWithError(s.stream(ctx, client, "/"+what+"/default/web/app", remotecommand.StreamOptions{Stdout: writer}, "x"))
				}()
				_, err := io.ReadFull(reader, make([]byte, len(hello)))
				require.NoError(t, err)
				assert.Equal(t, what, <-running)
				return func() { cancel(); <-ended }
			}
			for client := range clients {
				for _, what := range []string{"exec", "attach"} {
					gone := open(client, what)
					gone()
					assert.Equal(t, what, <-over, client)
				}
			}
			for client := range dialers {
				ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
				conn, err := net.Dial("tcp", s.forward(ctx, client, "/portForward/default/web", 80))
				require.NoError(t, err)
				_, err = io.ReadFull(conn, make([]byte, len(hello)))
				require.NoError(t, err)
				assert.Equal(t, "forward", <-running)
				cancel()
				assert.Equal(t, "forward", <-over, client)
				conn.Close()
			}
			// And when the server stops, which waits for them.
			var left []func()
			for client := range clients {
				left = append(left, open(client, "exec"))
			}
			ended := make(chan struct{})
			go func() { defer close(ended); s.stop() }()
			for range left {
				<-over
			}
			<-ended
			for _, gone := range left {
				gone()
			}
		})
	}
	nothingLeft(t)
}

// Hundreds of concurrent streams each get their own data, and no resources of them
// remain. The same is true of a thousand: set KUBEPARTS_STREAMS=1000 on an idle
// machine, since the client gives up after 30 s.
func TestManyCommandsAtOnce(t *testing.T) {
	many := 100
	if n, err := strconv.Atoi(os.Getenv("KUBEPARTS_STREAMS")); err == nil {
		many = n
	}
	for how, begin := range runtimes {
		t.Run(how, func(t *testing.T) {
			// None closes before all are connected.
			var come sync.WaitGroup
			come.Add(many)
			s := onSite(t, begin(t, program{exec: func(_ context.Context, cmd []string, s runtime.Streams) (int32, error) {
				come.Done()
				come.Wait()
				_, err := io.WriteString(s.Stdout, cmd[0])
				return 0, err
			}}), nil)
			names := []string{"SPDY", "WebSocket v5"}
			var all sync.WaitGroup
			for i := range many {
				all.Go(func() {
					var out locked
					err := s.stream(t.Context(), names[i%2], "/exec/default/web/app", remotecommand.StreamOptions{Stdout: &out}, fmt.Sprint("command ", i))
					assert.NoError(t, err)
					assert.Equal(t, fmt.Sprint("command ", i), out.String())
				})
			}
			all.Wait()
		})
	}
	nothingLeft(t)
}

// rawRequest writes a request directly to the connection, and returns the response.
func rawRequest(t *testing.T, s *site, path string, headers ...string) (net.Conn, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", s.base.Host)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n%s\r\n\r\n", path, strings.Join(headers, "\r\n"))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	return conn, answer
}

// A client that sends nothing more, or garbage, does not block anything.
func TestAClientThatOpensNoStreamsIsLetGo(t *testing.T) {
	for how, begin := range runtimes {
		t.Run(how, func(t *testing.T) {
			s := onSite(t, begin(t, shell), func(c *server.Config) { c.Containers.StreamIdleTimeout = 100 * time.Millisecond })
			s.server.SetStreamCreation(300 * time.Millisecond)
			paths := []string{"/portForward/default/web"}
			if how == "in process" { // a runtime's server may wait for them for longer
				paths = append(paths, "/exec/default/web/app?output=1", "/attach/default/web/app?output=1")
			}
			for _, path := range paths {
				protocol := "X-Stream-Protocol-Version: v4.channel.k8s.io"
				if strings.HasPrefix(path, "/portForward") {
					protocol = "X-Stream-Protocol-Version: portforward.k8s.io"
				}
				silent, answer := rawRequest(t, s, path, protocol)
				require.Equal(t, http.StatusSwitchingProtocols, answer.StatusCode, path)
				begun := time.Now()
				_, err := io.Copy(io.Discard, silent)
				assert.Less(t, time.Since(begun), patience, "%v: %v", path, err)

				rude, answer := rawRequest(t, s, path, protocol)
				require.Equal(t, http.StatusSwitchingProtocols, answer.StatusCode)
				_, _ = rude.Write([]byte(strings.Repeat("\x80\x03\x00\x01garbage", 1000)))
				_, _ = io.Copy(io.Discard, rude)
			}
			_, answer := rawRequest(t, s, "/portForward/default/web", "X-Stream-Protocol-Version: v9")
			assert.Equal(t, http.StatusForbidden, answer.StatusCode)
		})
	}
}

// An idle stream is closed after a while.
func TestAnIdleStreamIsCut(t *testing.T) {
	for how, begin := range runtimes {
		t.Run(how, func(t *testing.T) {
			over := make(chan error, 1)
			s := onSite(t, begin(t, program{exec: func(ctx context.Context, _ []string, _ runtime.Streams) (int32, error) {
				<-ctx.Done()
				over <- ctx.Err()
				return 0, ctx.Err()
			}}), func(c *server.Config) { c.Containers.StreamIdleTimeout = 200 * time.Millisecond })
			// The other clients send a ping now and then.
			_ = s.stream(t.Context(), "SPDY", "/exec/default/web/app", remotecommand.StreamOptions{Stdout: io.Discard}, "idle")
			assert.ErrorIs(t, <-over, context.Canceled)
		})
	}
}
