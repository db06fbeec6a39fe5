package server

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/gorilla/websocket"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/streamserver"
)

// portForward serves /portForward: connections to ports of a pod (rule sv-10). Clients use
// SPDY, WebSocket with the ports in the query, or SPDY in a WebSocket, which is terminated
// here since streaming servers of runtimes do not support it.
func (s *Server) portForward(w http.ResponseWriter, r *http.Request, proxy *streamProxy) {
	tunneled := wsstream.IsWebSocketRequestWithTunnelingProtocol(r)
	options := new(portforward.V4Options)
	var err error
	if !tunneled {
		if options, err = portforward.NewV4Options(r); err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	pod, err := s.podOf(r)
	if err == nil {
		err = checkUpgrade(r)
	}
	if s.respondError(w, r, err) {
		return
	}
	forwarder, ok := compose.As[runtime.PortForwarder](s.cfg.Runtime)
	if s.delegate(w, r, proxy, tunneled, func(server runtime.StreamServer) (*url.URL, error) {
		return server.PortForwardURL(r.Context(), pod.UID, options.Ports)
	}) {
		return
	}
	if !ok {
		refuse(w, http.StatusNotFound, "port forwarding is not supported by the runtime of this node")
		return
	}
	streams := s.streams()
	if tunneled {
		client := streamserver.NewClient(w, r, streams.Idle)
		defer client.End()
		streams.Idle = 0 // enforced by the client
		w, r = tunnel(client, r)
	}
	streams.PortForward(w, r, options.Ports, func(ctx context.Context, port int32, conn io.ReadWriteCloser) error {
		return forwarder.PortForward(ctx, pod.UID, port, conn)
	})
}

// tunnelPrefix precedes the protocol in the name of a WebSocket subprotocol.
const tunnelPrefix = "SPDY/3.1+"

// tunnel converts a request for SPDY in a WebSocket into a request for SPDY.
func tunnel(client *streamserver.Client, r *http.Request) (http.ResponseWriter, *http.Request) {
	inner := r.Clone(client.Context())
	inner.Method = http.MethodPost
	for _, name := range []string{"Sec-Websocket-Protocol", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions"} {
		inner.Header.Del(name)
	}
	inner.Header.Set("Upgrade", "SPDY/3.1")
	inner.Header.Del("X-Stream-Protocol-Version")
	for _, p := range websocket.Subprotocols(r) {
		if name, ok := strings.CutPrefix(p, tunnelPrefix); ok {
			inner.Header.Add("X-Stream-Protocol-Version", name)
		}
	}
	return &tunnelWriter{client: client, request: r, header: http.Header{}}, inner
}
