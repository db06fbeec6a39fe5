package prober

import (
	"context"
	"net"
)

// linger is how long, in seconds, the kernel keeps a probe's socket once it is
// closed. Without it thousands of probes leave a port each in TIME_WAIT, for a
// minute (prober-53).
const linger = 1

// Dial opens a connection for a probe, with a socket that doesn't stay when it
// is closed (prober-53). It is for handlers of other packages, too.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(linger) // a socket that is closed already needs none
	}
	return conn, err
}
