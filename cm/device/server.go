package device

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubeparts/kubeparts/internal/unixgrpc"
)

// maxRegistration is the maximum size in bytes of a request to register, which consists of names.
const maxRegistration = 64 << 10

// socket is the name of the registration socket in the directory of the plugins.
const socket = "kubelet.sock"

// Run serves plugins until ctx is done. It returns nil after everything that it started
// has returned, and an error if the socket cannot be served or on a second call. It first
// removes all files except the checkpoint from the directory, unless another server listens
// on the socket: plugins register again when their sockets are removed.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("device: Manager"); err != nil {
		return err
	}
	path := filepath.Join(m.cfg.Dir, socket)
	if unixgrpc.Serves(ctx, path) {
		return fmt.Errorf("device: another kubelet listens at %s and keeps its plugins; configure another directory of device plugins", path)
	}
	if err := m.empty(); err != nil {
		return err
	}
	listener, err := unixgrpc.Listen(ctx, path)
	if err != nil {
		return fmt.Errorf("device: listen for plugins: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Register starts goroutines that are waited for below: no call continues after Serve.
	err = unixgrpc.Serve(ctx, listener, unixgrpc.Service{
		Register: func(to *grpc.Server) {
			pluginapi.RegisterRegistrationServer(to, &registration{manager: m, ctx: ctx})
		},
		Options: []grpc.ServerOption{grpc.MaxRecvMsgSize(maxRegistration)},
	})
	cancel(nil)
	m.plugins.Wait()
	m.forgetPlugins()
	if err != nil {
		return fmt.Errorf("device: serve plugins: %w", err)
	}
	return nil
}

// empty creates the directory or removes its files.
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

// A registration implements the registration service.
type registration struct {
	pluginapi.UnimplementedRegistrationServer
	manager *Manager
	ctx     context.Context // of Run
}

// Register registers a plugin.
func (r *registration) Register(_ context.Context, req *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	err := checkRegistration(req)
	if err == nil {
		err = r.manager.register(r.ctx, req)
	}
	if err != nil {
		r.manager.cfg.Logger.Error("Failed to register device plugin", "resource", req.GetResourceName(), "endpoint", req.GetEndpoint(), "err", err)
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

// register connects to a plugin. Other plugins of the resource stay connected, except one with the
// same endpoint.
func (m *Manager) register(ctx context.Context, req *pluginapi.RegisterRequest) error {
	p, err := newPlugin(ctx, m.cfg.Dir, req)
	if err != nil {
		return err
	}
	ctx, p.cancel = context.WithCancelCause(ctx)
	m.mu.Lock()
	r := m.ledger.of(p.resource)
	before := r.at(p.endpoint)
	r.remove(before, time.Now())
	r.add(p)
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

// listed sets the devices that a plugin reported.
func (m *Manager) listed(p *plugin, list []Device) {
	m.mu.Lock()
	changed := m.ledger.of(p.resource).report(p, list)
	if changed {
		m.touchLocked()
	}
	m.mu.Unlock()
	if changed {
		m.changed(p.resource)
		m.save()
	}
}

// lost removes a disconnected plugin, unless another has replaced it. The devices are unhealthy
// if it was the last one of the resource.
func (m *Manager) lost(ctx context.Context, p *plugin, why error) {
	m.mu.Lock()
	r := m.ledger.of(p.resource)
	known := r.remove(p, time.Now())
	remaining := len(r.plugins)
	if known {
		m.touchLocked()
	}
	m.mu.Unlock()
	if !known {
		return
	}
	if ctx.Err() == nil && remaining == 0 {
		m.cfg.Logger.Warn("Device plugin disconnected; its devices are unhealthy until it registers again", "resource", p.resource, "endpoint", p.endpoint, "err", why)
	}
	m.changed(p.resource)
	m.save()
}

// forgetPlugins marks all devices unhealthy after Run has disconnected their plugins.
func (m *Manager) forgetPlugins() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.ledger.resources {
		for _, p := range slices.Clone(r.plugins) {
			r.remove(p, time.Now())
		}
	}
}
