package server

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gorilla/websocket"
	clientforward "k8s.io/client-go/tools/portforward"

	"github.com/kubeparts/kubeparts/runtime/cri/streamserver"
)

// A tunnelWriter is the response writer of a SPDY connection that goes through a
// WebSocket: when it is taken over, the WebSocket is opened. Any other answer is the
// client's own.
type tunnelWriter struct {
	client  *streamserver.Client
	request *http.Request
	header  http.Header
}

func (t *tunnelWriter) Header() http.Header { return t.header }

func (t *tunnelWriter) WriteHeader(code int) {
	if code == http.StatusSwitchingProtocols {
		return // which is said when the connection is taken over
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
		// A page of any origin, as of /exec: the API server passes on where they come from.
		CheckOrigin:  func(*http.Request) bool { return true },
		Subprotocols: []string{tunnelPrefix + t.header.Get("X-Stream-Protocol-Version")},
	}
	socket, err := upgrader.Upgrade(t.client, t.request, nil)
	if err != nil {
		return nil, nil, err
	}
	socket.SetReadLimit(maxTunnelled)
	c := clientforward.NewTunnelingConnection("server", socket)
	return c, bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c)), nil
}

// maxTunnelled bounds a message of a tunnel, in bytes: one is a frame of SPDY at most.
const maxTunnelled = 1<<24 + 8
