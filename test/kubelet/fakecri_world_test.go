package kubelet

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	criserve "github.com/kubeparts/kubeparts/runtime/cri/serve"
)

// serveFakeCRI serves a CRI runtime in memory on a unix socket until the test ends,
// and returns its endpoint and a function that stops it earlier. wrap, if not nil,
// replaces the listener.
func serveFakeCRI(t *testing.T, fake *fakecri.Runtime, wrap func(net.Listener) net.Listener) (endpoint string, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fakecri") // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "cri.sock")
	listener, err := criserve.Listen(t.Context(), socket)
	require.NoError(t, err)
	if wrap != nil {
		listener = wrap(listener)
	}
	server, err := criserve.New(criserve.Config{Listener: listener, Runtime: fake, Images: fake, Streams: fake})
	require.NoError(t, err)
	serving, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Run(serving) })
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return "unix://" + socket, stop
}

// onFakeCRI returns a world on a CRI runtime in memory. Its pods execute nothing.
func onFakeCRI(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an agent")
	}
	endpoint, _ := serveFakeCRI(t, newFakeCRI(t), nil)
	return &world{agent: newAgent(t, endpoint)}
}

func newFakeCRI(t *testing.T) *fakecri.Runtime {
	t.Helper()
	fake, err := fakecri.New(fakecri.Config{WriteLogs: true})
	require.NoError(t, err)
	return fake
}
