//go:build unix

package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	goruntime "runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/server"
)

// many is 3,000, or the number that the limit of open files permits: both ends of each connection
// are in this process.
func many() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 100
	}
	return int(min(3_000, (limit.Cur-min(limit.Cur, 300))/2))
}

// heap returns the bytes of heap in use.
func heap() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// Half-open connections over TCP, without a handshake: permitted clients are served,
// and the memory of the connections is bounded.
func TestThousandsOfHalfOpenConnectionsTakeABoundedAmount(t *testing.T) {
	ca := newIssuer(t, "ca")
	pair, err := tls.X509KeyPair(ca.sign("n1", x509.ExtKeyUsageServerAuth))
	require.NoError(t, err)
	addr := listen(t, server.ListenerConfig{
		Handler: newServer(t, nil), Limits: server.Limits{MaxUnauthenticated: 256},
		TLS: server.TLSConfig{Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }},
	})
	client := ca.client(nil, "")
	served := func() {
		answer, err := client.Get("https://" + addr + "/pods")
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		require.Equal(t, 200, answer.StatusCode)
	}
	served()
	before, goroutines := heap(), goruntime.NumGoroutine()
	n := many()
	flood := make([]net.Conn, 0, n)
	defer func() {
		for _, c := range flood {
			_ = c.Close()
		}
	}()
	for i := range n {
		c, err := net.DialTimeout("tcp", addr, 90*time.Second)
		require.NoError(t, err)
		flood = append(flood, c)
		if i%2 == 0 {
			_, _ = c.Write([]byte{22, 3, 1, 2, 0, 1}) // the beginning of a handshake
		}
		if i%(n/10+1) == 0 {
			served()
		}
	}
	served()
	eventually(t, "those of connections that are closed end", func() bool { return goruntime.NumGoroutine()-goroutines < 2*256+100 })
	took := int64(heap()) - int64(before)
	t.Logf("%d connections: %d KiB, %d goroutines", n, took>>10, goruntime.NumGoroutine()-goroutines)
	// The clients' ends are in it: a few hundred bytes each.
	assert.Less(t, took, int64(48<<20))
}
