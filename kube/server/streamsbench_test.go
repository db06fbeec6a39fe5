package server_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
)

// encrypted is a site with TLS, as nodes have it.
func encrypted(b *testing.B, rt runtime.Runtime) *site {
	certificate := httptest.NewTLSServer(nil)
	cert := certificate.TLS.Certificates[0]
	certificate.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	s := newServer(b, func(c *server.Config) { c.Pods, c.Runtime = pods{webPod()}, rt })
	listener, err := server.NewListener(server.ListenerConfig{
		Listener: l, Handler: s, TLS: server.TLSConfig{Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }},
	})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- listener.Run(ctx) }()
	b.Cleanup(func() { cancel(); require.NoError(b, <-ended) })
	base := &url.URL{Scheme: "https", Host: l.Addr().String()}
	return &site{t: b, server: s, base: base, rest: &rest.Config{Host: base.String(), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}}
}

// BenchmarkExec is the round trip of a command that does nothing, with its output, in
// a CRI runtime: directly (a URL by gRPC, and the streams there), and through this
// server, over TLS.
func BenchmarkExec(b *testing.B) {
	for _, over := range []struct {
		name string
		rt   func(b *testing.B) (rt runtime.Runtime, id string)
	}{
		{"fake", func(b *testing.B) (runtime.Runtime, string) {
			return withID(b, behindSocket(b, program{exec: func(_ context.Context, _ []string, s runtime.Streams) (int32, error) {
				_, err := io.WriteString(s.Stdout, "done")
				return 0, err
			}}))
		}},
		{"containerd", onContainerd},
	} {
		b.Run(over.name, func(b *testing.B) {
			rt, id := over.rt(b)
			s := encrypted(b, rt)
			cmd := []string{"/bin/echo", "done"}
			b.Run("by the runtime", func(b *testing.B) {
				for b.Loop() {
					execer, _ := compose.As[runtime.StreamExecer](rt)
					code, err := execer.StreamExec(b.Context(), id, cmd, runtime.Streams{Stdout: io.Discard, Stderr: io.Discard})
					require.NoError(b, err)
					require.Zero(b, code)
				}
			})
			for _, client := range []string{"SPDY", "WebSocket v5"} {
				b.Run("by the server over "+client, func(b *testing.B) {
					for b.Loop() {
						require.NoError(b, s.stream(b.Context(), client, "/exec/default/web/app", remotecommand.StreamOptions{Stdout: io.Discard, Stderr: io.Discard}, cmd...))
					}
				})
			}
		})
	}
}

// withID returns the ID of the one container.
func withID(b *testing.B, rt runtime.Runtime) (runtime.Runtime, string) {
	found, err := rt.PodStatus(b.Context(), "u1")
	require.NoError(b, err)
	return rt, found.Containers[0].ID
}

func onContainerd(b *testing.B) (runtime.Runtime, string) {
	daemon := lab.Containerd(b, lab.ContainerdConfig{})
	client, err := remote.Dial(b.Context(), daemon.Endpoint, remote.Config{})
	require.NoError(b, err)
	b.Cleanup(func() { _ = client.Close(context.Background()) })
	dir, err := os.MkdirTemp("", "bench")
	require.NoError(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	rt, err := cri.New(cri.Config{
		Name: client.Name, Runtime: client.Runtime, Images: client.Images, Calls: cri.CallConfig{Streams: new(streaming.Client)}, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"},
	})
	require.NoError(b, err)
	pod := webPod()
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = lab.Busybox, v1.PullNever
	pod.Spec.Containers[0].Command = []string{"sleep", "3600"}
	for i := 0; ; i++ {
		did, err := rt.SyncPod(b.Context(), runtime.SyncRequest{Pod: pod})
		require.NoError(b, err)
		if len(did.Actions) == 0 {
			break
		}
		require.Less(b, i, 10)
	}
	return withID(b, rt)
}
