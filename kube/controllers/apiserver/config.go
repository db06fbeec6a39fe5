package apiserver

import (
	"errors"
	"net/netip"
)

// A Config configures the server. The zero value is that of an envtest.
type Config struct {
	// ServiceCIDR is the range of the cluster IPs of Services. Zero: 10.0.0.0/24.
	ServiceCIDR netip.Prefix
}

// complete sets the defaults of cfg, or returns an error that names an invalid field.
func (cfg *Config) complete() error {
	if cfg.ServiceCIDR == (netip.Prefix{}) {
		cfg.ServiceCIDR = netip.MustParsePrefix("10.0.0.0/24")
	}
	if !cfg.ServiceCIDR.IsValid() {
		return errors.New("apiserver: Config.ServiceCIDR is invalid")
	}
	return nil
}
