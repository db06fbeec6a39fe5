package unixgrpc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/kubeparts/kubeparts/internal/unixgrpc"
)

// large answers with much more than a request.
type large struct {
	grpc_health_v1.UnimplementedHealthServer
	list  *grpc_health_v1.HealthListResponse
	calls chan struct{}
}

func (l large) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return new(grpc_health_v1.HealthCheckResponse), nil
}

func (l large) List(context.Context, *grpc_health_v1.HealthListRequest) (*grpc_health_v1.HealthListResponse, error) {
	select {
	case l.calls <- struct{}{}:
	default:
	}
	return l.list, nil
}

// serveLarge serves answers of a mebibyte.
func serveLarge(t *testing.T, limits unixgrpc.Limits) (socket string, calls chan struct{}) {
	t.Helper()
	calls = make(chan struct{}, 10_000)
	list := &grpc_health_v1.HealthListResponse{Statuses: map[string]*grpc_health_v1.HealthCheckResponse{strings.Repeat("x", 1<<20): {}}}
	socket = filepath.Join(t.TempDir(), "s")
	start(t, unixgrpc.Server{
		Socket: socket, QPS: 1e9, Burst: 1e9, Limits: limits,
		Register: func(to *grpc.Server) { grpc_health_v1.RegisterHealthServer(to, large{list: list, calls: calls}) },
	})
	_, client := connect(t, socket)
	require.NoError(t, check(t, client))
	return socket, calls
}

// A raw is a client that writes frames.
type raw struct {
	t    *testing.T
	conn net.Conn
	*http2.Framer
	next uint32
}

// dialRaw connects a client that accepts the first window bytes of each answer and never more.
func dialRaw(t *testing.T, socket string, window uint32) *raw {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	r := &raw{t: t, conn: conn, Framer: http2.NewFramer(conn, conn), next: 1}
	require.NoError(t, r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
	return r
}

// list makes a call and returns its number and an error if the connection is closed.
func (r *raw) list() (uint32, error) {
	id := r.next
	r.next += 2
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", "/grpc.health.v1.Health/List"}, {":authority", "localhost"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		require.NoError(r.t, enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
	}
	if err := r.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		return id, err
	}
	return id, r.WriteData(id, true, binary.BigEndian.AppendUint32([]byte{0}, 0))
}

// closed waits until the server closes the connection.
func (r *raw) closed(within time.Duration) error {
	_ = r.conn.SetReadDeadline(time.Now().Add(within))
	_, err := io.Copy(io.Discard, r.conn)
	if errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	return err
}

func heap() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A client that opens connections closes its own, and others are served.
func TestConnectionsAreLimited(t *testing.T) {
	socket, _ := serveLarge(t, unixgrpc.Limits{Connections: 10})
	_, other := connect(t, socket)
	require.NoError(t, check(t, other))
	var idle []net.Conn
	for i := range 300 {
		conn, err := net.Dial("unix", socket)
		require.NoError(t, err)
		defer conn.Close()
		idle = append(idle, conn)
		if i%50 == 0 {
			require.NoError(t, check(t, other), "a client that calls")
		}
	}
	require.NoError(t, check(t, other))
	assert.Eventually(t, func() bool {
		open := 0
		for _, conn := range idle {
			_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				open++ // not closed by the server
			}
		}
		return open <= 9
	}, patience, time.Millisecond)
	_, late := connect(t, socket)
	require.NoError(t, check(t, late))
}

// A client that never accepts an answer cannot make the server hold more than the limit.
func TestAnswersThatAreNotAcceptedAreLimited(t *testing.T) {
	socket, calls := serveLarge(t, unixgrpc.Limits{Streams: 200, Undelivered: 8 << 20})
	before := heap()
	for range 4 {
		r := dialRaw(t, socket, 0)
		for range 200 {
			if _, err := r.list(); err != nil {
				break
			}
		}
		require.NoError(t, r.closed(patience), "closed by the server")
	}
	assert.NotEmpty(t, calls)
	// The calls of closed connections may still end.
	assert.Eventually(t, func() bool { return heap() < before+24<<20 }, patience, 10*time.Millisecond)
	_, client := connect(t, socket)
	require.NoError(t, check(t, client))
}

// Calls that a client resets do not free more than their answers.
func TestResetCallsDoNotHideAnswers(t *testing.T) {
	socket, _ := serveLarge(t, unixgrpc.Limits{Streams: 200, Undelivered: 8 << 20})
	r := dialRaw(t, socket, 0)
	before, peak, made := heap(), uint64(0), 0
	for range 150 {
		id, err := r.list()
		if err != nil {
			break
		}
		if made++; made%3 == 0 {
			if r.WriteRSTStream(id, http2.ErrCodeCancel) != nil || r.WriteRSTStream(id+100_000, http2.ErrCodeCancel) != nil {
				break
			}
		}
		if made%10 == 0 {
			peak = max(peak, heap())
		}
	}
	require.NoError(t, r.closed(patience), "closed by the server")
	assert.Less(t, peak, before+40<<20)
}

func TestAnAnswerHasADeadline(t *testing.T) {
	socket, calls := serveLarge(t, unixgrpc.Limits{Delivery: 300 * time.Millisecond})
	_, client := connect(t, socket)
	r := dialRaw(t, socket, 1000)
	_, err := r.list()
	require.NoError(t, err)
	<-calls
	require.NoError(t, r.closed(patience), "closed by the server")

	// Neither a client that accepts its answers nor one that has reset a call is closed.
	for range 20 {
		_, err := client.List(t.Context(), &grpc_health_v1.HealthListRequest{})
		require.NoError(t, err)
	}
	resets := dialRaw(t, socket, 1000)
	id, err := resets.list()
	require.NoError(t, err)
	<-calls
	require.NoError(t, resets.WriteRSTStream(id, http2.ErrCodeCancel))
	assert.ErrorContains(t, resets.closed(time.Second), "timeout")
	require.NoError(t, check(t, client))
}
