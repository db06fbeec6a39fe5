package kubelet

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

// ports are the listeners of the kubelet's API; nil for those that are not open.
type ports struct{ api, readOnly, healthz net.Listener }

// openPorts opens the configured ports, so that a conflict is detected before anything is
// changed.
func openPorts(b base, clustered bool) (p ports, err error) {
	k := b.k
	api, readOnly, health := k.Port, k.ReadOnlyPort, k.HealthzPort
	if clustered && api == 0 {
		api = apiPort
	}
	if health == nil && clustered {
		health = new(int32(healthzPort))
	}
	if !deref(k.EnableServer) {
		api, readOnly = 0, 0
	}
	for _, open := range []struct {
		field   string
		into    *net.Listener
		address string
		port    int32
	}{
		{"port", &p.api, k.Address, api},
		{"readOnlyPort", &p.readOnly, k.Address, readOnly},
		{"healthzPort", &p.healthz, k.HealthzBindAddress, deref(health)},
	} {
		if open.port == 0 {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(open.address, strconv.Itoa(int(max(open.port, 0)))))
		if err != nil {
			return p, errors.Join(fmt.Errorf("%s: %w; choose another, or stop the kubelet that uses it", open.field, err), p.close())
		}
		*open.into = l
	}
	return p, nil
}

// close closes the listeners. They may already be closed.
func (p ports) close() error {
	for _, l := range []net.Listener{p.api, p.readOnly, p.healthz} {
		if l != nil {
			_ = l.Close()
		}
	}
	return nil
}
