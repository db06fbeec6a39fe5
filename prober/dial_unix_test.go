//go:build unix

package prober_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/prober"
)

func TestTheSocketOfAProbeDoesNotStay(t *testing.T) { // prober-53
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	conn, err := prober.Dial(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		linger, err := unix.GetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER)
		if assert.NoError(t, err) {
			assert.NotZero(t, linger.Onoff)
			assert.EqualValues(t, 1, linger.Linger)
		}
	}))
}
