package server

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gorilla/websocket"
	clientforward "k8s.io/client-go/tools/portforward"

	"github.com/kubeparts/kubeparts/runtime/cri/streamserver"
)

// A tunnelWriter is the response writer of a SPDY connection in a WebSocket: Hijack opens
// the WebSocket. Any other response is sent to the client unchanged.
type tunnelWriter struct {
	client  *streamserver.Client
	request *http.Request
	header  http.Header
}

func (t *tunnelWriter) Header() http.Header { return t.header }

func (t *tunnelWriter) WriteHeader(code int) {
	if code == http.StatusSwitchingProtocols {
		return // sent by Hijack
	}
	for name, values := range t.header {
		t.client.Header()[name] = values
	}
	t.client.WriteHeader(code)
}

func (t *tunnelWriter) Write(p []byte) (int, error) { return t.client.Write(p) }

// Hijack implements http.Hijacker.
func (t *tunnelWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	upgrader := websocket.Upgrader{
		// Any origin, as with /exec: the API server forwards the header of the client.
		CheckOrigin:  func(*http.Request) bool { return true },
		Subprotocols: []string{tunnelPrefix + t.header.Get("X-Stream-Protocol-Version")},
	}
	socket, err := upgrader.Upgrade(t.client, t.request, nil)
	if err != nil {
		return nil, nil, err
	}
	socket.SetReadLimit(maxTunnelMessage)
	c := clientforward.NewTunnelingConnection("server", socket)
	return c, bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c)), nil
}

// maxTunnelMessage bounds a message of a tunnel, in bytes: the largest frame of SPDY.
const maxTunnelMessage = 1<<24 + 8
