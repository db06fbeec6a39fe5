package unixgrpc

import (
	"cmp"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Limits bound the connections of a server and their calls. Zero means the default.
type Limits struct {
	// Connections is the maximum number of connections. One more closes the connection that was
	// unused for the longest time, first of those that had no call, then of those that have
	// none. Default: 128.
	Connections int

	// Streams is the maximum number of concurrent calls of a connection. Default: 100.
	Streams int

	// Undelivered is the number of bytes of answers of all connections that the clients
	// have not accepted yet. If there are more, the connection with most of them is closed.
	// Default: 64 MiB.
	Undelivered int

	// Delivery is how long a client may take to accept an answer. Its connection is closed
	// afterwards if it has at least 64 KiB of answers to accept. Default: 30 s.
	Delivery time.Duration
}

const (
	// minUndelivered is the number of undelivered bytes for which a connection is not closed.
	minUndelivered = 64 << 10

	// prefaceTimeout is how long a client may take to send the first bytes of HTTP/2.
	prefaceTimeout = 10 * time.Second

	// A client that sends nothing for pingAfter is pinged, and must answer within pingTimeout.
	pingAfter   = time.Minute
	pingTimeout = 20 * time.Second
)

func (l Limits) withDefaults() Limits {
	l.Connections = cmp.Or(l.Connections, 128)
	l.Streams = cmp.Or(l.Streams, 100)
	l.Undelivered = cmp.Or(l.Undelivered, 64<<20)
	l.Delivery = cmp.Or(l.Delivery, 30*time.Second)
	return l
}

// options returns the options of a server with these limits. It must be served through connections.
func (l Limits) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxConcurrentStreams(uint32(l.Streams)), grpc.ConnectionTimeout(prefaceTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.StatsHandler(deliveries{}),
	}
}
