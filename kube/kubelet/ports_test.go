package kubelet

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

func TestPorts(t *testing.T) {
	open := func(lines string, clustered bool) (stores.Ports, error) {
		return stores.OpenPorts(newBase(t, standalone(t, lines)), clustered)
	}
	p, err := open("", false)
	require.NoError(t, err)
	assert.Equal(t, stores.Ports{}, p, "a standalone kubelet opens configured ports only")
	assert.Zero(t, stores.PortOf(p.API))
	require.NoError(t, p.Close())

	p, err = open("port: -1\nreadOnlyPort: -1\nhealthzPort: -1\naddress: 127.0.0.1\n", false)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	for _, l := range []net.Listener{p.API, p.ReadOnly, p.Healthz} {
		require.NotNil(t, l)
		assert.Equal(t, "127.0.0.1", l.Addr().(*net.TCPAddr).IP.String())
	}
	assert.EqualValues(t, p.API.Addr().(*net.TCPAddr).Port, stores.PortOf(p.API))

	// Ports that were opened before the failure are closed.
	taken := strconv.Itoa(int(stores.PortOf(p.API)))
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
	assert.Equal(t, stores.Ports{}, off)
}
