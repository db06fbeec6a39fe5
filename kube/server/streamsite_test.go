package server_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
)

// A program is the behavior of the container: for the streams of a CRI service, and
// for the optional interfaces of a runtime.
type program struct {
	exec    func(ctx context.Context, cmd []string, s runtime.Streams) (int32, error)
	attach  func(ctx context.Context, s runtime.Streams) error
	forward func(ctx context.Context, port int32, conn io.ReadWriteCloser) error
}

func (p program) StreamExec(ctx context.Context, _ string, cmd []string, s runtime.Streams) (int32, error) {
	return p.exec(ctx, cmd, s)
}

func (p program) StreamAttach(ctx context.Context, _ string, s runtime.Streams) error {
	return p.attach(ctx, s)
}

func (p program) StreamPortForward(ctx context.Context, _ string, port int32, conn io.ReadWriteCloser) error {
	defer conn.Close()
	return p.forward(ctx, port, conn)
}

// local is a runtime that streams in this process, of one pod.
type local struct {
	runtime.Runtime // which is not used
	program
}

func (local) PodStatus(_ context.Context, uid types.UID) (*runtime.PodStatus, error) {
	found := &runtime.PodStatus{UID: uid}
	if uid == "u1" {
		found.Containers = []runtime.ContainerStatus{
			{ID: "local://2", Name: "app", State: runtime.ContainerRunning},
			{ID: "local://1", Name: "app", State: runtime.ContainerExited},
			{ID: "local://0", Name: "over", State: runtime.ContainerExited},
		}
	}
	return found, nil
}

func (l local) Attach(ctx context.Context, id string, s runtime.Streams) error {
	return l.StreamAttach(ctx, id, s)
}

func (l local) PortForward(ctx context.Context, _ types.UID, port int32, conn io.ReadWriteCloser) error {
	return l.StreamPortForward(ctx, "", port, conn)
}

// webPod is the one pod of a site.
func webPod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "app", Image: "busybox"}}},
	}
}

// behindSocket is the pod engine over a CRI runtime with a streaming server: a
// stream's URL is requested over gRPC, and the stream then uses HTTP.
func behindSocket(t testing.TB, p program) runtime.Runtime {
	t.Helper()
	dir, err := os.MkdirTemp("", "cri") // the path of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	fake, err := fakecri.New(fakecri.Config{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	listener, err := serve.Listen(ctx, filepath.Join(dir, "cri.sock"))
	require.NoError(t, err)
	streams, err := serve.New(serve.Config{Listener: listener, Runtime: fake, Images: fake, Streams: p})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- streams.Run(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	client, err := remote.Dial(ctx, listener.Addr().String(), remote.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(ctx) })
	rt, err := cri.New(cri.Config{
		Name: client.Name, Runtime: client.Runtime, Images: client.Images, Calls: cri.CallConfig{Streams: new(streaming.Client)}, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"},
	})
	require.NoError(t, err)
	for i := 0; ; i++ {
		did, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: webPod()})
		require.NoError(t, err)
		if len(did.Actions) == 0 {
			return rt
		}
		require.Less(t, i, 10)
	}
}

// runtimes are the runtimes below a server, by the way their streams are served.
var runtimes = map[string]func(testing.TB, program) runtime.Runtime{
	"in process": func(_ testing.TB, p program) runtime.Runtime { return local{program: p} },
	"by the CRI": behindSocket,
}

// onSite starts a server over a runtime. It is stopped when the test ends.
func onSite(t testing.TB, rt runtime.Runtime, change func(*server.Config)) *site {
	t.Helper()
	s := newServer(t, func(c *server.Config) {
		c.Pods, c.Runtime = pods{webPod()}, rt
		if change != nil {
			change(c)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener, err := server.NewListener(server.ListenerConfig{Listener: l, Handler: s, Limits: server.Limits{MaxUnauthenticated: 4000}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- listener.Run(ctx) }()
	stop := sync.OnceFunc(func() { cancel(); require.NoError(t, <-ended) })
	t.Cleanup(stop)
	base := &url.URL{Scheme: "http", Host: l.Addr().String()}
	return &site{t: t, server: s, base: base, rest: &rest.Config{Host: base.String()}, stop: stop}
}

// locked is a buffer for two.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
