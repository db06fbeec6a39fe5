package streaming_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/moby/spdystream/spdy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
)

// zeros is an endless input.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// Whatever a server does, a call returns: at once after a protocol error, within Timeout
// if the session is not set up, and otherwise with its context. No goroutine is left.
func TestAMisbehavingServerNeitherHangsNorLeaks(t *testing.T) {
	const own, late, canceled = "", "no response within", "context canceled"
	for name, tc := range map[string]struct {
		serve func(conn net.Conn, req *http.Request) // instead of frames
		frame func(conn net.Conn, f *spdy.Framer)    // after the upgrade
		fail  string                                 // part of the error
	}{
		"sends nothing": {serve: func(conn net.Conn, _ *http.Request) { untilGone(conn) }, fail: late},
		"hangs up":      {serve: func(net.Conn, *http.Request) {}, fail: own},
		"speaks no HTTP": {serve: func(conn net.Conn, _ *http.Request) {
			fmt.Fprint(conn, "SSH-2.0-OpenSSH_9.9\r\n")
		}, fail: "invalid HTTP response"},
		"has endless headers": {serve: func(conn net.Conn, _ *http.Request) {
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\n")
			for {
				if _, err := fmt.Fprintf(conn, "X-More: %s\r\n", strings.Repeat("x", 1000)); err != nil {
					return
				}
			}
		}, fail: "invalid HTTP response"},
		"refuses": {serve: func(conn net.Conn, _ *http.Request) {
			fmt.Fprint(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nno token.")
		}, fail: "404 Not Found: no token."},
		"refuses at endless length": {serve: func(conn net.Conn, _ *http.Request) {
			fmt.Fprint(conn, "HTTP/1.1 403 Forbidden\r\n\r\n")
			for {
				if _, err := fmt.Fprint(conn, strings.Repeat("no! ", 1000)); err != nil {
					return
				}
			}
		}, fail: "403 Forbidden: no! no!"},
		"speaks another protocol": {serve: func(conn net.Conn, _ *http.Request) {
			switching(conn, "v1.channel.k8s.io")
			untilGone(conn)
		}, fail: `protocol "v1.channel.k8s.io"`},
		"hangs up after the upgrade": {frame: func(net.Conn, *spdy.Framer) {}, fail: own},
		"sends garbage for frames": {frame: func(conn net.Conn, _ *spdy.Framer) {
			_, _ = io.CopyN(conn, strings.NewReader(strings.Repeat("garbage\x80\x03\xff", 10000)), 90000)
		}, fail: own},
		"takes no stream":    {frame: func(conn net.Conn, _ *spdy.Framer) { untilGone(conn) }, fail: late},
		"takes some streams": {frame: func(conn net.Conn, f *spdy.Framer) { takes(f, 2); untilGone(conn) }, fail: late},
		"resets streams": {frame: func(conn net.Conn, f *spdy.Framer) {
			_, _ = f.ReadFrame() // resets of streams that are not open yet are ignored
			for id := range spdy.StreamId(9) {
				_ = f.WriteFrame(&spdy.RstStreamFrame{StreamId: id + 1, Status: spdy.RefusedStream})
			}
			takes(f, 9)
		}, fail: own},
		"sends data before it accepts streams": {frame: func(conn net.Conn, f *spdy.Framer) {
			ids := takes(f, 3)
			for range 100 {
				if f.WriteFrame(&spdy.DataFrame{StreamId: ids[0], Data: []byte("{")}) != nil {
					return
				}
			}
			untilGone(conn)
		}, fail: late},
		"has no output": {frame: func(conn net.Conn, f *spdy.Framer) { takes(f, 4); untilGone(conn) }, fail: canceled},
		"reads nothing": {frame: func(_ net.Conn, f *spdy.Framer) {
			takes(f, 4)
			<-time.After(500 * time.Millisecond)
		}, fail: canceled},
		"sends the outcome and keeps the output open": {frame: func(conn net.Conn, f *spdy.Framer) {
			ids := takes(f, 4)
			_ = f.WriteFrame(&spdy.DataFrame{StreamId: ids[0], Data: []byte(success), Flags: spdy.DataFlagFin})
			untilGone(conn)
		}, fail: canceled},
		"sends a wrong outcome and keeps the output open": {frame: func(conn net.Conn, f *spdy.Framer) {
			ids := takes(f, 4)
			_ = f.WriteFrame(&spdy.DataFrame{StreamId: ids[0], Data: []byte("?"), Flags: spdy.DataFlagFin})
			untilGone(conn)
		}, fail: "invalid status"},
		"has output without end": {frame: func(conn net.Conn, f *spdy.Framer) {
			ids := takes(f, 4)
			go untilGone(conn)
			for f.WriteFrame(&spdy.DataFrame{StreamId: ids[2], Data: make([]byte, 4096)}) == nil {
			}
		}, fail: canceled},
		"breaks off": {frame: func(conn net.Conn, f *spdy.Framer) {
			ids := takes(f, 4)
			_ = f.WriteFrame(&spdy.DataFrame{StreamId: ids[2], Data: []byte("half a li")})
		}, fail: own},
		"opens streams itself, pings and sends GOAWAY": {frame: func(conn net.Conn, f *spdy.Framer) {
			ids := takes(f, 4)
			_ = f.WriteFrame(&spdy.SynStreamFrame{StreamId: 2, Headers: http.Header{"A": {"b"}}})
			_ = f.WriteFrame(&spdy.PingFrame{Id: 2})
			_ = f.WriteFrame(&spdy.PingFrame{Id: 1})
			_ = f.WriteFrame(&spdy.DataFrame{StreamId: 77, Data: []byte("x")})
			_ = f.WriteFrame(&spdy.DataFrame{StreamId: ids[1], Data: []byte("to our input")})
			_ = f.WriteFrame(&spdy.DataFrame{StreamId: ids[2], Flags: spdy.DataFlagFin})
			_ = f.WriteFrame(&spdy.DataFrame{StreamId: ids[2], Flags: spdy.DataFlagFin})
			_ = f.WriteFrame(&spdy.GoAwayFrame{})
		}, fail: own},
	} {
		t.Run(name, func(t *testing.T) {
			u := serveConn(t, func(conn net.Conn, req *http.Request) {
				if tc.serve != nil {
					tc.serve(conn, req)
				}
			})
			if tc.frame != nil {
				u = frames(t, tc.frame)
			}
			before := goruntime.NumGoroutine()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			client := &streaming.Client{Timeout: 5 * time.Minute}
			switch tc.fail {
			case late:
				client.Timeout = 100 * time.Millisecond
			case canceled:
				time.AfterFunc(200*time.Millisecond, cancel)
			}
			begun := time.Now()
			_, err := client.Exec(ctx, u, runtime.Streams{Stdin: zeros{}, Stdout: io.Discard, Stderr: io.Discard})
			require.Error(t, err)
			require.ErrorContains(t, err, tc.fail)
			if tc.fail == canceled {
				require.ErrorIs(t, err, context.Canceled)
			}
			assert.Less(t, time.Since(begun), 90*time.Second)
			for end := time.Now().Add(90 * time.Second); goruntime.NumGoroutine() > before; <-time.After(5 * time.Millisecond) {
				if time.Now().After(end) {
					buf := make([]byte, 1<<20)
					t.Fatalf("%d goroutines, %d before:\n%s", goruntime.NumGoroutine(), before, buf[:goruntime.Stack(buf, true)])
				}
			}
		})
	}
}

func TestAForwardEndsWithItsContext(t *testing.T) {
	u := frames(t, func(conn net.Conn, f *spdy.Framer) { takes(f, 2); untilGone(conn) })
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	require.ErrorIs(t, new(streaming.Client).PortForward(ctx, u, 80, theirs), context.Canceled)
	_, err := ours.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF)
}
