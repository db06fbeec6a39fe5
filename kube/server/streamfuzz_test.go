package server_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime"
)

// FuzzStreamRequest sends requests for streams with any query, protocols and body. The server
// responds to each of them without a server error, and passes only valid ports to the runtime.
func FuzzStreamRequest(f *testing.F) {
	for _, path := range []string{"exec/default/web/app", "exec/default/web/u1/app", "attach/default/web/app", "portForward/default/web", "portForward/default/web/u1", "run/default/web/app"} {
		f.Add(path, "output=1&command=id&command=-u", "SPDY/3.1", "v4.channel.k8s.io", "")
		f.Add(path, "output=1&input=1&tty=1", "websocket", "v5.channel.k8s.io", "\x81\x80\x00\x00\x00\x00")
		f.Add(path, "port=80,443&port=1", "websocket", "v4.channel.k8s.io", "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff")
		f.Add(path, "port=65536&ports=0", "websocket", "SPDY/3.1+portforward.k8s.io", "\x80\x03\x00\x01\x01\x00\xff\xff")
		f.Add(path, "%zz&;&=&port=-1", "SPDY/3.1, websocket", ",,v5.channel.k8s.io,", "output=1")
	}
	p := newPipes()
	ports := make(chan int32, 1024)
	rt := local{program: program{
		exec:   func(context.Context, []string, runtime.Streams) (int32, error) { return 0, nil },
		attach: func(context.Context, runtime.Streams) error { return nil },
		forward: func(_ context.Context, port int32, conn io.ReadWriteCloser) error {
			ports <- port
			return conn.Close()
		},
	}}
	s := newServer(f, func(c *server.Config) { c.Pods, c.Runtime = pods{webPod()}, rt })
	s.SetStreamCreation(100 * time.Millisecond)
	l, err := server.NewListener(server.ListenerConfig{Listener: p, Handler: s})
	require.NoError(f, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	f.Cleanup(func() {
		cancel()
		require.NoError(f, <-done)
	})
	line := strings.NewReplacer("\r", " ", "\n", " ", "\x00", " ")
	f.Fuzz(func(t *testing.T, path, query, upgrade, protocols, body string) {
		if len(path)+len(query)+len(upgrade)+len(protocols)+len(body) > 64<<10 {
			t.Skip("the size of requests is not under test")
		}
		target := (&url.URL{Path: "/" + path}).EscapedPath() + "?" + strings.NewReplacer(" ", "+", "#", "%23").Replace(line.Replace(query))
		var b strings.Builder
		b.WriteString("POST " + target + " HTTP/1.1\r\nHost: n1\r\nConnection: Upgrade\r\nUpgrade: " + line.Replace(upgrade) + "\r\n")
		b.WriteString("Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: " + line.Replace(protocols) + "\r\n")
		b.WriteString("X-Stream-Protocol-Version: " + line.Replace(protocols) + "\r\n\r\n" + body)
		c := p.dial()
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = io.WriteString(c, b.String()) // the server may close before it has read all
		}()
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, "it is answered: %q", b.String())
		assert.Less(t, answer.StatusCode, 500, "%q", b.String())
		_ = c.Close()
		<-sent
		for {
			select {
			case port := <-ports:
				assert.Positive(t, port)
				assert.LessOrEqual(t, port, int32(65535))
			default:
				return
			}
		}
	})
}
