package server

import (
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

// What is counted is given back: no connection is forgotten, no byte counted twice,
// whatever order things happen in.
func TestACrewIsEmptyWhenAllHaveGone(t *testing.T) {
	w := &crew{max: 3, strangers: 2, unread: 10, log: slog.New(slog.DiscardHandler)}
	pipe := func() *conn {
		c, other := net.Pipe()
		t.Cleanup(func() { _ = other.Close() })
		return w.admit(c)
	}
	a, b := pipe(), pipe()
	a.sent(5)
	assert.Equal(t, 5, w.bytes)
	a.begin()
	assert.Equal(t, 0, w.bytes, "its request is complete")
	assert.Equal(t, 2, w.waits, "it is not authorized yet")
	a.trusted()
	a.sent(100) // its body
	a.begin()
	assert.Equal(t, 1, w.waits, "a trusted connection is no stranger")
	c := pipe()
	d := pipe() // b has to go
	assert.True(t, b.gone)
	assert.Nil(t, b.place)
	d.sent(8)
	c.sent(3) // d has sent most
	assert.True(t, d.gone)
	assert.Equal(t, 3, w.bytes)
	c.begin()
	require.NoError(t, c.Close())
	c.begin()
	c.trusted()
	assert.Equal(t, 0, w.waits, "one that has gone does not come back")
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	_ = b.Close()
	_ = d.Close()
	assert.Empty(t, w.all)
	assert.Empty(t, w.hosts)
	assert.Zero(t, w.bytes)
	w.closeAll()
	assert.Nil(t, pipe(), "it is over")
}

// A from is a connection of another host.
type from struct {
	net.Conn
	host string
}

func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.host), Port: 1} }

// Who floods the port drives out his own connections, not those of others.
func TestAHostDrivesOutItsOwn(t *testing.T) {
	w := &crew{max: 100, strangers: 10, unread: 1 << 20, log: slog.New(slog.DiscardHandler)}
	call := func(host string) *conn {
		c, other := net.Pipe()
		t.Cleanup(func() { _ = other.Close() })
		return w.admit(from{c, host})
	}
	good := []*conn{call("10.0.0.1"), call("fd00::1")}
	for range 1000 {
		call("10.0.0.66")
	}
	for _, c := range good {
		assert.False(t, c.gone)
	}
	assert.Equal(t, 10, w.waits)
	assert.Len(t, w.hosts, 3)
}
