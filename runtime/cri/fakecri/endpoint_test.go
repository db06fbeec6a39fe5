package fakecri_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// probe returns the status of a GET request over a connection of dial.
func probe(dial func(context.Context, string, string) (net.Conn, error), addr string) (int, error) {
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + "/healthz")
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

func TestEndpointsAreReadyByTheirBehavior(t *testing.T) {
	on(t, does(fake.Behavior{Endpoints: []fake.Endpoint{
		{Port: 8080, HTTP: true, ReadyAfter: 5 * time.Second, UnreadyAfter: 20 * time.Second},
		{Port: 5432, ReadyAfter: 10 * time.Second, UnreadyAfter: 20 * time.Second},
	}}), func(n *node) {
		id, _ := n.started()
		ip := n.Sandboxes("a")[0].IP
		is := func(code int, open bool) {
			n.Helper()
			got, err := probe(n.DialContext, ip+":8080")
			require.NoError(n, err)
			assert.Equal(n, code, got)
			conn, err := n.DialContext(n.ctx, "tcp", ip+":5432")
			if !open {
				assert.ErrorIs(n, err, syscall.ECONNREFUSED)
				assert.EqualError(n, err, "dial tcp "+ip+":5432: connect: connection refused")
				return
			}
			require.NoError(n, err)
			_, err = io.WriteString(conn, "anything")
			assert.NoError(n, err)
			assert.NoError(n, conn.Close())
		}
		is(503, false)
		time.Sleep(5 * time.Second)
		is(200, false)
		time.Sleep(5 * time.Second)
		is(200, true)
		time.Sleep(10 * time.Second)
		is(503, false)
		for _, addr := range []string{ip + ":1", "10.9.9.9:8080", "127.0.0.1:8080"} {
			_, err := n.DialContext(n.ctx, "tcp", addr)
			assert.ErrorIs(n, err, syscall.ECONNREFUSED, addr)
		}
		for _, addr := range []string{ip, ip + ":http", ip + ":99999", ""} {
			_, err := n.DialContext(n.ctx, "tcp", addr)
			assert.Error(n, err, addr)
		}
		gone, cancel := context.WithCancel(n.ctx)
		cancel()
		_, err := n.DialContext(gone, "tcp", ip+":8080")
		assert.ErrorIs(n, err, context.Canceled)
		_, ok := n.Endpoint("a", "web", 8080)
		assert.False(n, ok, "no real listener")

		require.NoError(n, n.StopContainer(n.ctx, id, 0))
		_, err = n.DialContext(n.ctx, "tcp", ip+":8080")
		assert.ErrorIs(n, err, syscall.ECONNREFUSED)
	})
}

func TestConnectionsEndWithTheirContainer(t *testing.T) {
	on(t, does(fake.Behavior{Exit: &fake.Exit{After: time.Minute}, Endpoints: []fake.Endpoint{{Port: 80, HTTP: true}, {Port: 81}}}), func(n *node) {
		n.started()
		ip := n.Sandboxes("a")[0].IP
		// Keep-alive: two requests on one connection, which is then idle.
		client := http.Client{Transport: &http.Transport{DialContext: n.DialContext}}
		for range 2 {
			resp, err := client.Post("http://"+ip, "text/plain", strings.NewReader(strings.Repeat("x", 100_000)))
			require.NoError(n, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(n, err)
			require.NoError(n, resp.Body.Close())
		}
		conn, err := n.DialContext(n.ctx, "tcp", ip+":81")
		require.NoError(n, err)
		_, err = conn.Read(make([]byte, 1))
		assert.ErrorIs(n, err, io.EOF)
		assert.Equal(n, time.Minute, time.Since(time.Unix(0, n.look(n.Containers("a")[0].ID).StartedAt)))
		assert.NoError(n, conn.Close())
	}) // the bubble would not end with a goroutine left
}

func TestPodsOnTheHostsNetworkAreAtLoopback(t *testing.T) {
	on(t, does(fake.Behavior{Endpoints: []fake.Endpoint{{Port: 80, HTTP: true}}}), func(n *node) {
		cfg := podConfig("a")
		cfg.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE},
		}}
		sandbox, err := n.RunPodSandbox(n.ctx, cfg, "")
		require.NoError(n, err)
		require.NoError(n, n.StartContainer(n.ctx, n.created(sandbox, "a", "web", 0)))
		for _, host := range []string{"127.0.0.1", "localhost", "[::1]"} {
			code, err := probe(n.DialContext, host+":80")
			assert.NoError(n, err, host)
			assert.Equal(n, 200, code, host)
		}
	})
}

func TestListeningInABubbleIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := fakecri.New(fakecri.Config{Listen: true})
		assert.ErrorContains(t, err, "synctest bubble")
	})
	_, err := fakecri.New(fakecri.Config{Listen: true})
	assert.NoError(t, err)
}

// In real time, because there are real listeners.
func TestEndpointsReallyListen(t *testing.T) {
	before := runtime.NumGoroutine()
	cfg := does(fake.Behavior{Endpoints: []fake.Endpoint{
		{HTTP: true},
		{Port: 1, ReadyAfter: time.Hour},
	}})
	cfg.Behaviors.Containers["db"] = fake.Behavior{Endpoints: []fake.Endpoint{{ReadyAfter: time.Millisecond}}}
	cfg.Behaviors.Containers["short"] = fake.Behavior{Endpoints: []fake.Endpoint{{UnreadyAfter: time.Millisecond}}}
	cfg.Listen = true
	r, err := fakecri.New(cfg)
	require.NoError(t, err)
	n := &node{t, r, t.Context()}
	id, sandbox := n.started()
	addr, ok := n.Endpoint("a", "web", 0)
	require.True(t, ok)
	assert.Regexp(t, `^127\.0\.0\.1:\d+$`, addr)
	code, err := probe(new(net.Dialer).DialContext, addr)
	require.NoError(t, err)
	assert.Equal(t, 200, code)
	_, ok = n.Endpoint("a", "web", 1)
	assert.False(t, ok, "it is not ready")
	for _, absent := range [][2]string{{"a", "absent"}, {"b", "web"}} {
		_, ok = n.Endpoint(absent[0], absent[1], 0)
		assert.False(t, ok)
	}

	db := n.created(sandbox, "a", "db", 0)
	require.NoError(t, n.StartContainer(n.ctx, db))
	var dbAddr string
	require.Eventually(t, func() bool { dbAddr, ok = n.Endpoint("a", "db", 0); return ok }, 90*time.Second, time.Millisecond)
	conn, err := net.Dial("tcp", dbAddr)
	require.NoError(t, err)
	short := n.created(sandbox, "a", "short", 0)
	require.NoError(t, n.StartContainer(n.ctx, short))
	require.Eventually(t, func() bool { _, ok = n.Endpoint("a", "short", 0); return !ok }, 90*time.Second, time.Millisecond)

	// A container that cannot listen runs nevertheless.
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	taken := podConfig("b")
	taken.Annotations = map[string]string{fakecri.AnnotationBehavior: "http=" + port}
	other, err := n.RunPodSandbox(n.ctx, taken, "")
	require.NoError(t, err)
	otherID := n.created(other, "b", "web", 0)
	require.NoError(t, n.StartContainer(n.ctx, otherID))
	n.runs(otherID)

	require.NoError(t, n.StopContainer(n.ctx, id, 0))
	_, err = net.DialTimeout("tcp", addr, time.Second)
	assert.Error(t, err)
	require.NoError(t, n.StopPodSandbox(n.ctx, sandbox))
	_, err = conn.Read(make([]byte, 1))
	assert.Error(t, err, "it was closed")
	require.NoError(t, conn.Close())
	require.NoError(t, n.StopPodSandbox(n.ctx, other))
	// Eventually itself uses one more goroutine.
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, 90*time.Second, time.Millisecond, "leaked goroutines")
}
