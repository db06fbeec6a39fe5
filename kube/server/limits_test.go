package server

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sv-1: the limits of a request are the kubelet's.
func TestTheLimitsAreTheKubelets(t *testing.T) {
	on, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer on.Close()
	l, err := NewListener(ListenerConfig{Listener: on, Handler: http.NotFoundHandler()})
	require.NoError(t, err)
	assert.Equal(t, 90*time.Second, l.http.IdleTimeout)
	assert.Equal(t, 4*time.Hour, l.http.ReadTimeout)
	assert.Equal(t, 4*time.Hour, l.http.WriteTimeout)
	assert.Equal(t, 1<<20, l.http.MaxHeaderBytes)
	assert.NotZero(t, l.http.ReadHeaderTimeout)
}

// Counts return to zero when all connections are closed, in whatever order requests and
// closes occur.
func TestConnectionsAreCountedExactly(t *testing.T) {
	w := &connections{max: 3, maxUnauthenticated: 2, maxPendingBytes: 10, log: slog.New(slog.DiscardHandler)}
	pipe := func() *connection {
		c, other := net.Pipe()
		t.Cleanup(func() { _ = other.Close() })
		return w.add(c)
	}
	a, b := pipe(), pipe()
	a.received(5)
	assert.Equal(t, 5, w.pendingBytes)
	a.requestReceived()
	assert.Equal(t, 0, w.pendingBytes, "its request is complete")
	assert.Equal(t, 2, w.unauthenticated, "it is not authorized yet")
	a.requestAuthorized()
	a.received(100) // its body
	a.requestReceived()
	assert.Equal(t, 1, w.unauthenticated, "an authenticated connection is not counted")
	c := pipe()
	d := pipe() // b is closed
	assert.NotContains(t, w.all, b)
	assert.Nil(t, b.place)
	d.received(8)
	c.received(3) // d has sent most
	assert.NotContains(t, w.all, d)
	assert.Equal(t, 3, w.pendingBytes)
	c.requestReceived()
	require.NoError(t, c.Close())
	c.requestReceived()
	c.requestAuthorized()
	assert.Equal(t, 0, w.unauthenticated, "a closed connection is not counted again")
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	_ = b.Close()
	_ = d.Close()
	assert.Empty(t, w.all)
	assert.Empty(t, w.queues)
	assert.Zero(t, w.pendingBytes)
	w.closeAll()
	assert.Nil(t, pipe(), "closeAll refuses further connections")
}

// A from is a connection of another host.
type from struct {
	net.Conn
	host string
}

func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.host), Port: 1} }

// A client that floods the port causes its own connections to be closed, not those of others.
func TestAHostDisplacesOnlyItsOwnConnections(t *testing.T) {
	w := &connections{max: 100, maxUnauthenticated: 10, maxPendingBytes: 1 << 20, log: slog.New(slog.DiscardHandler)}
	call := func(host string) *connection {
		c, other := net.Pipe()
		t.Cleanup(func() { _ = other.Close() })
		return w.add(from{c, host})
	}
	good := []*connection{call("10.0.0.1"), call("fd00::1")}
	for range 1000 {
		call("10.0.0.66")
	}
	for _, c := range good {
		assert.Contains(t, w.all, c)
	}
	assert.Equal(t, 10, w.unauthenticated)
	assert.Len(t, w.queues, 3)
	for i := range 1000 {
		call(fmt.Sprintf("fd00:0:0:66::%x", i)) // one host has a /64
	}
	for _, c := range good {
		assert.Contains(t, w.all, c)
	}
}
