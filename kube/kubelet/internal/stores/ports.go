package stores

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// Default ports of a kubelet with a cluster. A standalone one opens configured ports only.
const (
	apiPort     = 10250
	healthzPort = 10248
)

// Ports are the listeners of the kubelet's API; nil for those that are not open.
type Ports struct{ API, ReadOnly, Healthz net.Listener }

// OpenPorts opens the configured ports, so that a conflict is detected before anything is
// changed.
func OpenPorts(b Base, clustered bool) (p Ports, err error) {
	k := b.Configuration
	api, readOnly, health := k.Port, k.ReadOnlyPort, k.HealthzPort
	if clustered && api == 0 {
		api = apiPort
	}
	if health == nil && clustered {
		health = new(int32(healthzPort))
	}
	if !Deref(k.EnableServer) {
		api, readOnly = 0, 0
	}
	for _, open := range []struct {
		field   string
		into    *net.Listener
		address string
		port    int32
	}{
		{"port", &p.API, k.Address, api},
		{"readOnlyPort", &p.ReadOnly, k.Address, readOnly},
		{"healthzPort", &p.Healthz, k.HealthzBindAddress, Deref(health)},
	} {
		if open.port == 0 {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(open.address, strconv.Itoa(int(max(open.port, 0)))))
		if err != nil {
			return p, errors.Join(fmt.Errorf("%s: %w; choose another, or stop the kubelet that uses it", open.field, err), p.Close())
		}
		*open.into = l
	}
	return p, nil
}

// Close closes the listeners. They may already be closed.
func (p Ports) Close() error {
	for _, l := range []net.Listener{p.API, p.ReadOnly, p.Healthz} {
		if l != nil {
			_ = l.Close()
		}
	}
	return nil
}

// PortOf returns the port of a listener; 0 if it is nil.
func PortOf(l net.Listener) int32 {
	if l == nil {
		return 0
	}
	return int32(l.Addr().(*net.TCPAddr).Port)
}
