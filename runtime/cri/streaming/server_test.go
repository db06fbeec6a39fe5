package streaming_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/moby/spdystream"
	"github.com/moby/spdystream/spdy"
	"github.com/stretchr/testify/require"
)

// serveConn serves the connections of the client: serve is called after the request
// was read, and may return at any time.
func serveConn(t *testing.T, serve func(conn net.Conn, req *http.Request)) *url.URL {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		serve(conn, req)
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL + "/exec/token")
	require.NoError(t, err)
	return u
}

// switching accepts the upgrade to the requested protocol.
func switching(conn net.Conn, protocol string) {
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: %s\r\n\r\n", protocol)
}

// A session is the server's side of streams, by stream type.
type session struct {
	conn    *spdystream.Connection
	streams map[string]*spdystream.Stream
}

// serveSPDY serves well-behaved sessions with the library that runtimes use; run is
// called when n streams have been opened.
func serveSPDY(t *testing.T, n int, run func(s session)) *url.URL {
	return serveConn(t, func(conn net.Conn, req *http.Request) {
		switching(conn, req.Header.Get("X-Stream-Protocol-Version"))
		over, err := spdystream.NewConnection(conn, true)
		if err != nil {
			return
		}
		opened := make(chan *spdystream.Stream, 16)
		go over.Serve(func(stream *spdystream.Stream) {
			if stream.SendReply(http.Header{}, false) == nil {
				opened <- stream
			}
		})
		s := session{over, map[string]*spdystream.Stream{}}
		for range n {
			select {
			case stream := <-opened:
				s.streams[stream.Headers().Get("streamType")] = stream
			case <-over.CloseChan():
				return
			case <-time.After(90 * time.Second):
				return
			}
		}
		run(s)
		for _, stream := range s.streams {
			stream.Reset() // as runtimes end their sessions
		}
		over.Close()
		<-over.CloseChan()
	})
}

// frames serves a session frame by frame.
func frames(t *testing.T, run func(conn net.Conn, f *spdy.Framer)) *url.URL {
	return serveConn(t, func(conn net.Conn, req *http.Request) {
		switching(conn, req.Header.Get("X-Stream-Protocol-Version"))
		f, err := spdy.NewFramer(conn, bufio.NewReader(conn))
		if err != nil {
			return
		}
		run(conn, f)
	})
}

// takes accepts the first n streams, and returns their IDs.
func takes(f *spdy.Framer, n int) (ids []spdy.StreamId) {
	for len(ids) < n {
		frame, err := f.ReadFrame()
		if err != nil {
			return ids
		}
		if syn, ok := frame.(*spdy.SynStreamFrame); ok {
			ids = append(ids, syn.StreamId)
			if f.WriteFrame(&spdy.SynReplyFrame{StreamId: syn.StreamId, Headers: http.Header{}}) != nil {
				return ids
			}
		}
	}
	return ids
}

// untilGone waits until the client closes the connection.
func untilGone(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
