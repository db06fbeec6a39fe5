package prober_test

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// knock runs a TCPSocket and returns its outcome.
func knock(t *testing.T, to prober.Target, action v1.TCPSocketAction) prober.Outcome {
	t.Helper()
	to.Probe = &v1.Probe{ProbeHandler: v1.ProbeHandler{TCPSocket: &action}}
	out, err := prober.TCPSocket{}.Probe(t.Context(), to)
	require.NoError(t, err)
	return out
}

func TestAPortThatIsOpenIsASuccess(t *testing.T) { // prober-55
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nothing responds
	require.NoError(t, err)
	to := targetOf(t, "http://"+l.Addr().String())
	port := to.Probe.HTTPGet.Port
	success := prober.Outcome{Result: runtime.ProbeSuccess}
	assert.Equal(t, success, knock(t, to, v1.TCPSocketAction{Port: port}))
	assert.Equal(t, success, knock(t, to, v1.TCPSocketAction{Port: intstr.FromString("http")}))
	away := to
	away.PodIP = "192.0.2.1"
	assert.Equal(t, success, knock(t, away, v1.TCPSocketAction{Host: "127.0.0.1", Port: port}))

	conn, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err, "nothing was sent, and the connection is closed")
	conn.Close()

	require.NoError(t, l.Close())
	out := knock(t, to, v1.TCPSocketAction{Port: port})
	assert.Equal(t, runtime.ProbeFailure, out.Result)
	assert.Contains(t, out.Output, "dial tcp 127.0.0.1:"+port.String())
}

func TestIPv6AddressesAreBracketed(t *testing.T) { // prober-43 prober-55
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6: ", err)
	}
	defer l.Close()
	_, text, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	to := prober.Target{Container: &v1.Container{}, PodIP: "::1", Timeout: 20 * time.Second}
	assert.Equal(t, runtime.ProbeSuccess, knock(t, to, v1.TCPSocketAction{Port: intstr.FromInt(port)}).Result)
}

func TestADialHasATimeout(t *testing.T) { // prober-55
	to := prober.Target{Container: &v1.Container{}, PodIP: "127.0.0.1", Timeout: time.Nanosecond}
	out := knock(t, to, v1.TCPSocketAction{Port: intstr.FromInt(9)})
	assert.Equal(t, runtime.ProbeFailure, out.Result)
	assert.Equal(t, "dial tcp 127.0.0.1:9: i/o timeout", out.Output)
}

func TestBadInputOfASocketIsNamed(t *testing.T) {
	to := prober.Target{Container: &v1.Container{Name: "web"}, PodIP: "127.0.0.1", Timeout: 20 * time.Second}
	for words, action := range map[string]*v1.TCPSocketAction{
		"probe has no tcpSocket": nil,
		"invalid port number: 0": {},
		`invalid port number: "sql" is neither a number nor the name of a port of container web`: {Port: intstr.FromString("sql")},
	} {
		to.Probe = &v1.Probe{ProbeHandler: v1.ProbeHandler{TCPSocket: action}}
		_, err := prober.TCPSocket{}.Probe(t.Context(), to)
		require.EqualError(t, err, words)
	}
	to.PodIP = ""
	to.Probe.TCPSocket = &v1.TCPSocketAction{Port: intstr.FromInt(80)}
	_, err := prober.TCPSocket{}.Probe(t.Context(), to)
	require.EqualError(t, err, "the pod has no IP yet")

	out := knock(t, to, v1.TCPSocketAction{Host: "missing.invalid", Port: intstr.FromInt(80)})
	assert.Equal(t, runtime.ProbeFailure, out.Result)
	assert.Contains(t, out.Output, "missing.invalid")
}
