package kubelet

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPorts(t *testing.T) {
	open := func(lines string, clustered bool) (ports, error) {
		return openPorts(newBase(t, standalone(t, lines)), clustered)
	}
	p, err := open("", false)
	require.NoError(t, err)
	assert.Equal(t, ports{}, p, "a standalone kubelet opens configured ports only")
	assert.Zero(t, portOf(p.api))
	require.NoError(t, p.close())

	p, err = open("port: -1\nreadOnlyPort: -1\nhealthzPort: -1\naddress: 127.0.0.1\n", false)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.close() })
	for _, l := range []net.Listener{p.api, p.readOnly, p.healthz} {
		require.NotNil(t, l)
		assert.Equal(t, "127.0.0.1", l.Addr().(*net.TCPAddr).IP.String())
	}
	assert.EqualValues(t, p.api.Addr().(*net.TCPAddr).Port, portOf(p.api))

	// Ports that were opened before the failure are closed.
	taken := strconv.Itoa(int(portOf(p.api)))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	_, err = open("port: "+port+"\nreadOnlyPort: "+taken+"\naddress: 127.0.0.1\n", false)
	require.ErrorContains(t, err, "readOnlyPort: listen tcp 127.0.0.1:"+taken)
	require.ErrorContains(t, err, "choose another")
	again, err := net.Listen("tcp", "127.0.0.1:"+port)
	require.NoError(t, err)
	require.NoError(t, again.Close())

	off, err := open("enableServer: false\nport: -1\nreadOnlyPort: -1\nhealthzPort: 0\n", true)
	require.NoError(t, err)
	assert.Equal(t, ports{}, off)
}
