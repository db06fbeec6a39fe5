package register_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/kubeparts/kubeparts/internal/plugintest"
	"github.com/kubeparts/kubeparts/volume/csi/register"
)

// A plugin makes itself known at a socket.
type plugin struct {
	registerapi.UnimplementedRegistrationServer
	info *registerapi.PluginInfo
	hang bool
	deaf atomic.Bool // it cannot be notified

	reported chan *registerapi.RegistrationStatus
	stop     func()
}

func (p *plugin) GetInfo(ctx context.Context, _ *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	if p.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return p.info, nil
}

func (p *plugin) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	p.reported <- s
	if p.deaf.Load() {
		return nil, errors.New("cannot be notified")
	}
	return new(registerapi.RegistrationStatusResponse), nil
}

func start(t *testing.T, path, typ, name, endpoint string) *plugin {
	t.Helper()
	p := &plugin{
		info:     &registerapi.PluginInfo{Type: typ, Name: name, Endpoint: endpoint, SupportedVersions: []string{"1.0.0"}},
		reported: make(chan *registerapi.RegistrationStatus, 100),
	}
	sockets := new(plugintest.Sockets)
	require.NoError(t, sockets.Serve(path, func(s *grpc.Server) { registerapi.RegisterRegistrationServer(s, p) }))
	p.stop = sockets.Stop
	t.Cleanup(p.stop)
	return p
}

// A handler records the registered plugins.
type handler struct {
	mu     sync.Mutex
	known  map[string]string
	log    []string
	refuse error
}

func (h *handler) Register(_ context.Context, name, endpoint string, versions []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse != nil {
		return h.refuse
	}
	if h.known == nil {
		h.known = map[string]string{}
	}
	h.known[name] = endpoint
	h.log = append(h.log, fmt.Sprint("+", name, versions))
	return nil
}

func (h *handler) Deregister(_ context.Context, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, name)
	h.log = append(h.log, "-"+name)
}

func (h *handler) has(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known[name] != ""
}

func dir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "reg") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(d) })
	return d
}

func watcher(t *testing.T, d string, h register.Handler) *register.Watcher {
	t.Helper()
	w, err := register.New(register.Config{Dir: d, Handlers: map[string]register.Handler{register.CSIPlugin: h}})
	require.NoError(t, err)
	return w
}

func look(t *testing.T, w *register.Watcher) time.Time {
	t.Helper()
	retry, err := w.Scan(t.Context())
	require.NoError(t, err)
	return retry
}

// plg-1
func TestPluginsAreRegisteredAndDeregistered(t *testing.T) {
	d, h := dir(t), new(handler)
	w := watcher(t, d, h)
	assert.Zero(t, look(t, w))
	a := start(t, filepath.Join(d, "a-reg.sock"), register.CSIPlugin, "a", "/run/a.sock")
	b := start(t, filepath.Join(d, "below", "b.sock"), register.CSIPlugin, "b", "")
	hidden := start(t, filepath.Join(d, ".hidden.sock"), register.CSIPlugin, "hidden", "")
	require.NoError(t, os.WriteFile(filepath.Join(d, "file"), nil, 0o600))
	for range 3 {
		assert.Zero(t, look(t, w))
	}
	assert.Equal(t, map[string]string{"a": "/run/a.sock", "b": filepath.Join(d, "below", "b.sock")}, h.known)
	assert.True(t, (<-a.reported).PluginRegistered)
	assert.True(t, (<-b.reported).PluginRegistered)
	assert.Empty(t, a.reported, "once is enough")
	assert.Empty(t, hidden.reported)

	a.stop()
	look(t, w)
	assert.False(t, h.has("a"))
	assert.True(t, h.has("b"))
}

// plg-1
func TestARejectedPluginGetsTheReason(t *testing.T) {
	d, h := dir(t), &handler{refuse: errors.New("too old")}
	w := watcher(t, d, h)
	p := start(t, filepath.Join(d, "p.sock"), register.CSIPlugin, "p", "")
	other := start(t, filepath.Join(d, "o.sock"), "TapePlugin", "o", "")
	retry := look(t, w)
	assert.False(t, retry.IsZero())
	s := <-p.reported
	assert.False(t, s.PluginRegistered)
	assert.Equal(t, "too old", s.Error)
	s = <-other.reported
	assert.Equal(t, "no handler registered for plugin type: TapePlugin at socket "+filepath.Join(d, "o.sock"), s.Error)
	next := look(t, w)
	if time.Now().Before(retry) { // otherwise the machine is too slow to decide
		assert.Empty(t, p.reported, "not before its time")
	}
	h.refuse = nil
	for tries := 0; tries < 3 && !h.has("p"); tries++ { // the other one's time may be the first
		time.Sleep(time.Until(next) + time.Millisecond)
		next = look(t, w)
	}
	assert.True(t, h.has("p"))
}

func TestAReturningPluginIsRegisteredWithoutDeregistration(t *testing.T) {
	d, h := dir(t), new(handler)
	w := watcher(t, d, h)
	path := filepath.Join(d, "p.sock")
	first := start(t, path, register.CSIPlugin, "p", "/one")
	look(t, w)
	first.stop()
	start(t, path, register.CSIPlugin, "p", "/two")
	look(t, w)
	assert.Equal(t, map[string]string{"p": "/two"}, h.known)
	assert.Equal(t, []string{"+p[1.0.0]", "+p[1.0.0]"}, h.log)
}

func TestAnUnresponsiveSocketDoesNotDelayOthers(t *testing.T) {
	d, h := dir(t), new(handler)
	p := start(t, filepath.Join(d, "p.sock"), register.CSIPlugin, "p", "")
	hung := start(t, filepath.Join(d, "hung.sock"), register.CSIPlugin, "hung", "")
	hung.hang = true
	w := watcher(t, d, h)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, w.Run(ctx)) })
	select {
	case s := <-p.reported:
		assert.True(t, s.PluginRegistered)
	case <-time.After(time.Minute):
		t.Error("the plugin that answers was not called")
	}
	cancel()
	wg.Wait()
}

// A handler that does not return for one plugin, because its driver does not answer, delays neither a
// plugin that appears afterwards, nor the removal of another, nor the end of Run for long.
func TestAHandlerThatDoesNotReturnDoesNotDelayOthers(t *testing.T) {
	d := dir(t)
	for name, h := range map[string]*slowHandler{
		"Register":   {slow: "register", called: make(chan struct{}, 9)},
		"Deregister": {slow: "deregister", called: make(chan struct{}, 9)},
	} {
		t.Run(name, func(t *testing.T) {
			d := filepath.Join(d, name)
			w, err := register.New(register.Config{Dir: d, Handlers: map[string]register.Handler{register.CSIPlugin: h}})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { assert.NoError(t, w.Run(ctx)) })
			stuck := start(t, filepath.Join(d, "s.sock"), register.CSIPlugin, "stuck", "")
			if name == "Deregister" {
				require.Eventually(t, func() bool { return h.has("stuck") }, time.Minute, time.Millisecond)
				stuck.stop()
			}
			<-h.called
			begun := time.Now()
			p := start(t, filepath.Join(d, "p.sock"), register.CSIPlugin, "p", "")
			require.Eventually(t, func() bool { return h.has("p") }, 10*time.Second, time.Millisecond)
			p.stop()
			require.Eventually(t, func() bool { return !h.has("p") }, 10*time.Second, time.Millisecond)
			cancel()
			wg.Wait()
			assert.Less(t, time.Since(begun), 10*time.Second)
		})
	}
}

// A slowHandler does not return for the plugin "stuck" before its context is done.
type slowHandler struct {
	handler
	slow   string
	called chan struct{}
}

func (h *slowHandler) Register(ctx context.Context, name, endpoint string, versions []string) error {
	if name == "stuck" && h.slow == "register" {
		h.called <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	return h.handler.Register(ctx, name, endpoint, versions)
}

func (h *slowHandler) Deregister(ctx context.Context, name string) {
	if name == "stuck" && h.slow == "deregister" {
		h.called <- struct{}{}
		<-ctx.Done()
	}
	h.handler.Deregister(ctx, name)
}

func TestRunDetectsAddedAndRemovedPlugins(t *testing.T) {
	d, h := filepath.Join(dir(t), "registry"), new(handler)
	w := watcher(t, d, h)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, w.Run(ctx)) })
	defer wg.Wait()
	defer cancel()
	require.Eventually(t, func() bool { _, err := os.Stat(d); return err == nil }, time.Minute, time.Millisecond)
	p := start(t, filepath.Join(d, "p.sock"), register.CSIPlugin, "p", "")
	require.Eventually(t, func() bool { return h.has("p") }, time.Minute, time.Millisecond)
	p.stop()
	require.Eventually(t, func() bool { return !h.has("p") }, time.Minute, time.Millisecond)
}

func TestConfigurationsThatCannotWork(t *testing.T) {
	good := map[string]register.Handler{register.CSIPlugin: new(handler)}
	for _, cfg := range []register.Config{{}, {Dir: "x"}, {Dir: "x", Handlers: map[string]register.Handler{"CSIPlugin": nil}}, {Dir: "x", Handlers: good, Period: -1}} {
		_, err := register.New(cfg)
		require.ErrorContains(t, err, "register: Config.")
	}
}

// plg-1: while one version of a driver replaces another, there are two sockets of one
// name. When one is removed, the plugin of the other stays registered.
func TestTwoSocketsOfOnePlugin(t *testing.T) {
	for name, goes := range map[string]int{"the old one is removed": 0, "the new one is removed": 1} {
		t.Run(name, func(t *testing.T) {
			d, h := dir(t), new(handler)
			w := watcher(t, d, h)
			var both []*plugin
			for _, at := range []string{"one", "two"} {
				both = append(both, start(t, filepath.Join(d, at+".sock"), register.CSIPlugin, "p", "/"+at))
				look(t, w)
			}
			assert.Equal(t, map[string]string{"p": "/two"}, h.known)
			both[goes].stop()
			look(t, w)
			assert.Equal(t, map[string]string{"p": []string{"/two", "/one"}[goes]}, h.known)
			assert.NotContains(t, h.log, "-p", "its volumes are not without a driver in the meantime")
			both[1-goes].stop()
			look(t, w)
			assert.Empty(t, h.known)
		})
	}
}

// plg-1
func TestAPluginThatCannotBeNotifiedIsRegisteredAgain(t *testing.T) {
	d, h := dir(t), new(handler)
	w := watcher(t, d, h)
	p := start(t, filepath.Join(d, "a-reg.sock"), register.CSIPlugin, "a", "/run/a.sock")
	p.deaf.Store(true)
	require.NotZero(t, look(t, w))
	assert.True(t, (<-p.reported).PluginRegistered)
	assert.True(t, h.has("a"), "it may work nevertheless")
	look(t, w)
	assert.Empty(t, p.reported, "not before the next retry")
	p.deaf.Store(false)
	require.Eventually(t, func() bool { return look(t, w).IsZero() }, time.Minute, 100*time.Millisecond)
	assert.True(t, (<-p.reported).PluginRegistered)

	p.stop()
	look(t, w)
	assert.False(t, h.has("a"))
}
