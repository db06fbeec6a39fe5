package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	v1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// lookupTimeout bounds a DNS query: a server that does not answer must not prevent that the node is
// registered.
const lookupTimeout = 2 * time.Second

// An AddressConfig determines the addresses of a node (rule ns-18). Only NodeName is
// required.
type AddressConfig struct {
	// NodeName is resolved by DNS, which may take 2 seconds.
	NodeName string

	// Hostname is reported as the host name, and is the address if it is an IP address.
	// Empty: NodeName.
	Hostname string

	// NodeIPs are the configured addresses: one, or one of each family, the preferred one
	// first. 0.0.0.0 or :: alone selects a family. Empty: they are detected, IPv4 first.
	NodeIPs []net.IP

	// Cloud reports that an external cloud provider sets the addresses. Without NodeIPs
	// only the host name is then returned.
	Cloud bool

	// Network is the network of the machine. If nil, it is the network of package net and of the
	// routing tables of the kernel.
	Network Network
}

// A Network has the addresses of a machine and of other hosts.
type Network interface {
	// Lookup returns the addresses of a host.
	Lookup(ctx context.Context, host string) ([]net.IP, error)

	// Interfaces returns the addresses of the machine.
	Interfaces() ([]net.IP, error)

	// Default returns the address of the interface with the default route, of the family of
	// ip, or ip itself if it is specified.
	Default(ip net.IP) (net.IP, error)
}

// hostNetwork is the network of this machine.
type hostNetwork struct{}

func (hostNetwork) Lookup(ctx context.Context, host string) ([]net.IP, error) {
	return net.DefaultResolver.LookupIP(ctx, "ip", host)
}

func (hostNetwork) Default(ip net.IP) (net.IP, error) { return utilnet.ResolveBindAddress(ip) }

func (hostNetwork) Interfaces() ([]net.IP, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var ips []net.IP
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			ips = append(ips, n.IP)
		}
	}
	return ips, nil
}

// Addresses returns the current addresses: an InternalIP of each family, and the Hostname.
// It returns an error if a configured address is not one of this machine, or if none can be
// detected.
func (c AddressConfig) Addresses(ctx context.Context) ([]v1.NodeAddress, error) {
	if c.Hostname == "" {
		c.Hostname = c.NodeName
	}
	if c.Network == nil {
		c.Network = hostNetwork{}
	}
	if c.Cloud && len(c.NodeIPs) == 0 {
		return []v1.NodeAddress{{Type: v1.NodeHostName, Address: c.Hostname}}, nil
	}
	ips, err := c.ips(ctx)
	if err != nil {
		return nil, err
	}
	var out []v1.NodeAddress
	for _, ip := range ips {
		out = append(out, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip.String()})
	}
	return append(out, v1.NodeAddress{Type: v1.NodeHostName, Address: c.Hostname}), nil
}

func (c AddressConfig) ips(ctx context.Context) ([]net.IP, error) {
	preferred := net.IPv4zero
	switch {
	case len(c.NodeIPs) == 1 && c.NodeIPs[0].IsUnspecified():
		preferred = c.NodeIPs[0]
	case len(c.NodeIPs) > 0:
		for _, ip := range c.NodeIPs {
			if err := c.check(ip); err != nil {
				return nil, fmt.Errorf("node IP %s: %w", ip, err)
			}
		}
		return c.NodeIPs, nil
	}
	if ip := net.ParseIP(c.Hostname); ip != nil {
		return []net.IP{ip}, c.check(ip)
	}
	if ip := c.resolve(ctx, preferred); ip != nil {
		return []net.IP{ip}, nil
	}
	ip, err := c.Network.Default(preferred)
	if err != nil {
		return nil, fmt.Errorf("can't get ip address of node %s: %w", c.NodeName, err)
	}
	return []net.IP{ip}, nil
}

// resolve returns the first address of the node in DNS that is one of this machine,
// preferably of the preferred family; nil if there is none.
func (c AddressConfig) resolve(ctx context.Context, preferred net.IP) net.IP {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := c.Network.Lookup(ctx, c.NodeName)
	if err != nil {
		return nil // the node need not be in DNS
	}
	var other net.IP
	for _, ip := range found {
		if c.check(ip) != nil {
			continue
		}
		if (ip.To4() != nil) == (preferred.To4() != nil) {
			return ip
		}
		if other == nil {
			other = ip
		}
	}
	return other
}

// check returns why ip is not a valid address of this node; nil if it is.
func (c AddressConfig) check(ip net.IP) error {
	switch {
	case ip.To16() == nil:
		return errors.New("nodeIP must be a valid IP address")
	case ip.IsLoopback():
		return errors.New("nodeIP can't be loopback address")
	case ip.IsMulticast():
		return errors.New("nodeIP can't be a multicast address")
	case ip.IsLinkLocalUnicast():
		return errors.New("nodeIP can't be a link-local unicast address")
	case ip.IsUnspecified():
		return errors.New("nodeIP can't be an all zeros address")
	}
	have, err := c.Network.Interfaces()
	if err != nil {
		return err
	}
	for _, h := range have {
		if h.Equal(ip) {
			return nil
		}
	}
	return fmt.Errorf("node IP: %q not found in the host's network interfaces", ip.String())
}
