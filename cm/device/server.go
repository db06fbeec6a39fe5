package device

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// socket is the name of the socket at which plugins register, in their directory.
const socket = "kubelet.sock"

// Run serves plugins until ctx ends, and returns nil then, when everything that it
// started has returned. It empties the directory but for the state first: that is
// how plugins notice that they have to register again (dev-1). It returns an error
// if the socket cannot be served, and if it is called a second time.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("device: Manager"); err != nil {
		return err
	}
	if err := m.empty(); err != nil {
		return err
	}
	path := filepath.Join(m.cfg.Dir, socket)
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("device: listen for plugins: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	server := grpc.NewServer(grpc.WaitForHandlers(true)) // Register starts what is waited for below
	pluginapi.RegisterRegistrationServer(server, &registration{manager: m, ctx: ctx})
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
	case err = <-done:
		done <- nil
	}
	cancel(nil)
	server.Stop()
	if serveErr := <-done; err == nil {
		err = serveErr
	}
	m.plugins.Wait()
	m.forgetPlugins()
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("device: serve plugins: %w", err)
	}
	return nil
}

// empty makes the directory, or removes what is in it.
func (m *Manager) empty() error {
	if err := os.MkdirAll(m.cfg.Dir, 0o750); err != nil {
		return fmt.Errorf("device: %w", err)
	}
	entries, err := os.ReadDir(m.cfg.Dir)
	if err != nil {
		return fmt.Errorf("device: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), stateFile) {
			continue
		}
		if err := os.Remove(filepath.Join(m.cfg.Dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("device: %w", err)
		}
	}
	return nil
}

// A registration is what plugins call.
type registration struct {
	pluginapi.UnimplementedRegistrationServer
	manager *Manager
	ctx     context.Context // of Run: what a plugin starts ends with it
}

// Register takes a plugin in (dev-2).
func (r *registration) Register(_ context.Context, req *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	err := checkRegistration(req)
	if err == nil {
		err = r.manager.register(r.ctx, req)
	}
	if err != nil {
		r.manager.cfg.Logger.Error("a device plugin can't register", "resource", req.GetResourceName(), "endpoint", req.GetEndpoint(), "err", err)
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &pluginapi.Empty{}, nil
}

func checkRegistration(req *pluginapi.RegisterRequest) error {
	switch name := req.GetEndpoint(); {
	case !slices.Contains(pluginapi.SupportedVersions[:], req.GetVersion()):
		return fmt.Errorf("requested API version %q is not supported by kubelet. Supported version is %q", req.GetVersion(), pluginapi.SupportedVersions)
	case !extended(req.GetResourceName()):
		return fmt.Errorf("the ResourceName %q is invalid", req.GetResourceName())
	case name == "" || name == "." || name == ".." || name == socket || strings.ContainsAny(name, `/\`):
		return fmt.Errorf("the endpoint %q is not the name of a socket in the plugins' directory", name)
	}
	return nil
}

// register starts to follow a plugin; the one before is left (dev-3).
func (m *Manager) register(ctx context.Context, req *pluginapi.RegisterRequest) error {
	p, err := newPlugin(m.cfg.Dir, req)
	if err != nil {
		return err
	}
	ctx, p.cancel = context.WithCancelCause(ctx)
	m.mu.Lock()
	r := m.ledger.of(p.resource)
	before := r.plugin
	if before != nil {
		r.stopped(time.Now())
	}
	r.plugin, r.listed, r.prepares = p, false, p.options.GetPreStartRequired()
	m.plugins.Add(1)
	m.mu.Unlock()
	before.stop(errReplaced)
	if m.cfg.Hooks.Registered != nil {
		m.cfg.Hooks.Registered(p.resource)
	}
	go func() {
		defer m.plugins.Done()
		defer p.conn.Close()
		defer p.cancel(nil)
		err := p.follow(ctx, func(list []Device) { m.listed(p, list) })
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		m.lost(ctx, p, err)
	}()
	return nil
}

// listed takes a plugin's list.
func (m *Manager) listed(p *plugin, list []Device) {
	m.mu.Lock()
	r := m.ledger.of(p.resource)
	changed := r.plugin == p && r.replace(list)
	if changed {
		m.touchLocked()
	}
	m.mu.Unlock()
	if changed {
		m.changed(p.resource)
		m.save()
	}
}

// lost notes that a plugin is gone, and, when it has been for the grace period, that
// its resource is (dev-5).
func (m *Manager) lost(ctx context.Context, p *plugin, why error) {
	m.mu.Lock()
	r := m.ledger.of(p.resource)
	current := r.plugin == p
	if current {
		r.stopped(time.Now())
		m.touchLocked()
	}
	m.mu.Unlock()
	if !current {
		return // another has taken its place
	}
	if ctx.Err() == nil {
		m.cfg.Logger.Warn("a device plugin is gone; its devices can't be used", "resource", p.resource, "endpoint", p.endpoint, "err", why)
	}
	m.changed(p.resource)
	m.save()
}

// forgetPlugins marks all devices unhealthy when nobody follows their plugins.
func (m *Manager) forgetPlugins() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.ledger.resources {
		if r.plugin != nil {
			r.stopped(time.Now())
		}
	}
}
