package hollow_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/kubeparts/kubeparts/kube/auth"
)

// TestShortConnectionsLoseNoData opens connections that end at once: the pod answers a request and
// closes the connection, or the client has sent everything before the echo begins.
func TestShortConnectionsLoseNoData(t *testing.T) {
	s := serve(t, auth.Anonymous{}, map[string]string{"web": "http=8080,tcp=9090"})
	defer s.stop()
	addresses := []string{"0:8080", "0:9090"}
	for name, newForwarder := range map[string]func(stop, ready chan struct{}, problems io.Writer) (*portforward.PortForwarder, error){
		"SPDY": func(stop, ready chan struct{}, problems io.Writer) (*portforward.PortForwarder, error) {
			roundTripper, upgrader, err := spdy.RoundTripperFor(&rest.Config{})
			require.NoError(t, err)
			dialer := spdy.NewDialer(upgrader, &http.Client{Transport: roundTripper}, "POST", s.url(0, "/portForward/default/web"))
			return portforward.New(dialer, addresses, stop, ready, io.Discard, problems)
		},
		"WebSocket": func(stop, ready chan struct{}, problems io.Writer) (*portforward.PortForwarder, error) {
			dialer, err := portforward.NewSPDYOverWebsocketDialer(s.url(0, "/portForward/default/web"), &rest.Config{})
			require.NoError(t, err)
			return portforward.New(dialer, addresses, stop, ready, io.Discard, problems)
		},
	} {
		t.Run(name, func(t *testing.T) {
			stop, ready := make(chan struct{}), make(chan struct{})
			var problems bytes.Buffer
			forward, err := newForwarder(stop, ready, &problems)
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() { done <- forward.ForwardPorts() }()
			select {
			case <-ready:
			case err := <-done:
				require.NoError(t, err)
			}
			ports, err := forward.GetPorts()
			require.NoError(t, err)
			connections := 63 // of each of 8 clients, to each of 2 ports
			if testing.Short() {
				connections = 5
			}
			var clients sync.WaitGroup
			for range 8 {
				clients.Go(func() {
					for i := range connections {
						text, err := exchange(ports[0].Local, "GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n")
						assert.NoError(t, err)
						assert.True(t, strings.HasPrefix(text, "HTTP/1.1 200 OK\r\n") && strings.HasSuffix(text, "\r\n\r\nOK\n"), text)
						sent := fmt.Sprintf("connection %d", i)
						text, err = exchange(ports[1].Local, sent)
						assert.NoError(t, err)
						assert.Equal(t, sent, text)
					}
				})
			}
			clients.Wait()
			close(stop)
			require.NoError(t, <-done)
			assert.Empty(t, problems.String())
		})
	}
}

// exchange sends text, and returns what the other side sends until it closes the connection.
func exchange(port uint16, text string) (string, error) {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	data, err := io.ReadAll(conn)
	return string(data), err
}
