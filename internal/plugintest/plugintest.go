// Package plugintest serves the sockets of plugins in tests: of device plugins, DRA drivers and
// CSI drivers, and the registration of plugins with an agent.
package plugintest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Sockets are the sockets of a plugin. The zero value is ready. Safe for concurrent use.
type Sockets struct {
	mu      sync.Mutex // guards servers
	servers []*grpc.Server
	serving sync.WaitGroup
}

// Serve serves services at the path of a unix socket, which it replaces. It creates the directory
// of the socket.
func (s *Sockets) Serve(path string, register func(*grpc.Server), options ...grpc.ServerOption) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("plugintest: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("plugintest: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("plugintest: %w", err)
	}
	server := grpc.NewServer(options...)
	register(server)
	s.mu.Lock()
	s.servers = append(s.servers, server)
	s.mu.Unlock()
	s.serving.Go(func() { _ = server.Serve(listener) }) // it returns after Stop
	return nil
}

// Stop closes all connections and removes the sockets, as if the process of the plugin had
// terminated. Serve may be called again.
func (s *Sockets) Stop() {
	s.mu.Lock()
	servers := s.servers
	s.servers = nil
	s.mu.Unlock()
	for _, server := range servers {
		server.Stop()
	}
	s.serving.Wait()
}

// A Registration is the registration of a plugin, for a socket in the directory in which an agent
// looks for plugins. Safe for concurrent use.
type Registration struct {
	registerapi.UnimplementedRegistrationServer

	mu       sync.Mutex // guards the fields below
	info     *registerapi.PluginInfo
	statuses []*registerapi.RegistrationStatus
}

// Register serves the registration of a plugin with this information.
func (r *Registration) Register(s *Sockets, path string, info *registerapi.PluginInfo) error {
	r.mu.Lock()
	r.info = info
	r.mu.Unlock()
	return s.Serve(path, func(server *grpc.Server) { registerapi.RegisterRegistrationServer(server, r) })
}

// Statuses returns the results of the registrations, in order.
func (r *Registration) Statuses() []*registerapi.RegistrationStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.statuses)
}

// GetInfo implements the registration of plugins.
func (r *Registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info, nil
}

// NotifyRegistrationStatus implements the registration of plugins.
func (r *Registration) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses = append(r.statuses, s)
	return new(registerapi.RegistrationStatusResponse), nil
}
