package prober

import (
	"context"
	"net"
)

// linger is how many seconds the kernel keeps the socket of a probe after it was closed. Without
// it thousands of probes leave one port each in TIME_WAIT for a minute.
const linger = 1

// Dial opens a connection for a probe, whose socket does not stay in TIME_WAIT after it was
// closed. Handlers in other packages should use it.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(linger) // fails only for a closed socket
	}
	return conn, err
}
