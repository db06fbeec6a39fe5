package statuspage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serveTest serves handler and returns the address; stop ends Serve and returns its error.
func serveTest(t *testing.T, handler http.HandlerFunc) (addr string, stop func() error) {
	t.Helper()
	ln, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, ln, handler, nil) }()
	return ln.Addr().String(), func() error {
		cancel()
		return <-served
	}
}

func TestServeReturnsWhenTheHandlersHaveReturned(t *testing.T) {
	entered, returned := make(chan struct{}), make(chan struct{})
	addr, stop := serveTest(t, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		time.Sleep(10 * time.Millisecond)
		close(returned)
	})
	go func() {
		if resp, err := http.Get("http://" + addr); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-entered
	require.NoError(t, stop())
	select {
	case <-returned:
	default:
		t.Error("Serve returned before the handler")
	}
	_, err := net.DialTimeout("tcp", addr, time.Second)
	assert.Error(t, err)
}

func TestServeReportsAListenerThatFails(t *testing.T) {
	ln, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	err = Serve(t.Context(), ln, http.NotFoundHandler(), nil)
	require.ErrorIs(t, err, net.ErrClosed)
	assert.ErrorContains(t, err, "statuspage: serve at 127.0.0.1:")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, Serve(ctx, ln, http.NotFoundHandler(), nil))
}

// Idle and slow clients cannot keep others from the page.
func TestTheConnectionThatIsIdleForLongestIsClosed(t *testing.T) {
	addr, stop := serveTest(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	var held []net.Conn
	for range 3 * maxConnections {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\n") // never completes
		require.NoError(t, err)
		held = append(held, c)
	}
	client := http.Client{Transport: new(http.Transport), Timeout: 90 * time.Second}
	defer client.CloseIdleConnections()
	for range 3 {
		resp, err := client.Get("http://" + addr)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, "ok", string(body))
		require.NoError(t, resp.Body.Close())
	}
	require.NoError(t, held[0].SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err := held[0].Read(make([]byte, 1))
	var timeout net.Error
	assert.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the first connection is closed: %v", err)
	for _, c := range held {
		_ = c.Close()
	}
	require.NoError(t, stop())
}

func TestHeadersAreBounded(t *testing.T) {
	addr, stop := serveTest(t, func(http.ResponseWriter, *http.Request) { t.Error("the handler is called") })
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 17<<10)+"\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	_ = resp.Body.Close()
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
	require.NoError(t, stop())
}

func TestAConnectionIsCountedOnce(t *testing.T) {
	var c connections
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	for _, state := range []http.ConnState{http.StateNew, http.StateActive, http.StateIdle, http.StateActive} {
		assert.Nil(t, c.change(a, state))
		assert.Equal(t, 1, c.order.Len())
	}
	assert.Nil(t, c.change(b, http.StateNew))
	assert.Nil(t, c.change(a, http.StateClosed))
	assert.Nil(t, c.change(a, http.StateClosed))
	assert.Equal(t, 1, c.order.Len())
	assert.Nil(t, c.change(b, http.StateHijacked))
	assert.Empty(t, c.byKey)
}
