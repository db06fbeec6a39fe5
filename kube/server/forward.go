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

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/streamserver"
)

// portForward answers /portForward: connections to ports of a pod (sv-10). Three
// protocols are spoken: SPDY, WebSocket with the ports in the query, and SPDY in a
// WebSocket, which is ended here because no runtime's server speaks it.
func (s *Server) portForward(w http.ResponseWriter, r *http.Request, through *passage) {
	tunnelled := wsstream.IsWebSocketRequestWithTunnelingProtocol(r)
	options := new(portforward.V4Options)
	var err error
	if !tunnelled {
		if options, err = portforward.NewV4Options(r); err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	pod, err := s.podOf(r)
	if err == nil {
		err = upgradeOf(r)
	}
	if s.isRefused(w, r, err) {
		return
	}
	forwarder, here := runtime.As[runtime.PortForwarder](s.cfg.Runtime)
	if s.passedOn(w, r, through, tunnelled, func(there runtime.StreamServer) (*url.URL, error) {
		return there.PortForwardURL(r.Context(), pod.UID, options.Ports)
	}) {
		return
	}
	if !here {
		refuse(w, http.StatusNotFound, "this node's runtime forwards no ports")
		return
	}
	limits := s.streamLimits()
	if tunnelled {
		client := streamserver.NewClient(w, r, limits.Idle)
		defer client.End()
		limits.Idle = 0 // the tunnel has it
		w, r = tunnel(client, r)
	}
	streamserver.PortForward(w, r, options.Ports, limits, func(ctx context.Context, port int32, conn io.ReadWriteCloser) error {
		return forwarder.PortForward(ctx, pod.UID, port, conn)
	})
}

// tunnelPrefix is before the name of what is spoken in a tunnel.
const tunnelPrefix = "SPDY/3.1+"

// tunnel makes a request to speak SPDY in a WebSocket one to speak SPDY.
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
