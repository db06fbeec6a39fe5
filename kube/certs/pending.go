package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Bootstrapped returns why Kubeconfig cannot be used before Bootstrap has returned; nil if it
// can.
func (c Config) Bootstrapped() error { return checkKubeconfig(c) }

// NewPending returns a Rotation whose first certificate has not been issued: Run requests it
// as Bootstrap does, and TLS handshakes of clients with its Config wait for it. A node can
// run static pods meanwhile, such as the API server that accepts the request on a
// control-plane node of kubeadm. NewPending returns an error if cfg.Bootstrap fails. It starts
// nothing.
func NewPending(cfg Config) (*Rotation, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Kubeconfig == "" {
		return nil, errors.New("certs: Config.Kubeconfig is empty")
	}
	bootstrap, err := cfg.bootstrap(cfg.Bootstrapped())
	if err != nil {
		return nil, err
	}
	r := newRotation(cfg)
	r.config, err = r.clientConfig(rest.AnonymousClientConfig(bootstrap))
	return r, err
}

// bootstrap returns the bootstrap configuration of a node whose kubeconfig is invalid.
func (c Config) bootstrap(invalid error) (*rest.Config, error) {
	if c.Bootstrap == nil {
		return nil, fmt.Errorf("certs: Config.Bootstrap is nil: %w", invalid)
	}
	bootstrap, err := c.Bootstrap()
	if err != nil {
		return nil, fmt.Errorf("%w; bootstrap kubeconfig: %w", invalid, err)
	}
	return bootstrap, nil
}

// first requests the first certificate of a Rotation of NewPending.
func (r *Rotation) first(ctx context.Context) error {
	if err := Bootstrap(ctx, r.cfg); err != nil {
		return err
	}
	base, err := clientcmd.BuildConfigFromFlags("", r.cfg.Kubeconfig)
	if err != nil {
		return fmt.Errorf("certs: kubeconfig: %w", err)
	}
	if base.Host != r.config.Host {
		return fmt.Errorf("certs: kubeconfig %s has the server %s, and the bootstrap kubeconfig had %s", r.cfg.Kubeconfig, base.Host, r.config.Host)
	}
	return r.start(base)
}

// certificate returns the current certificate. It waits for the first one at most as long as a
// TLS handshake may take.
func (r *Rotation) certificate(handshake *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if c := r.current.Load(); c != nil {
		return c, nil
	}
	select {
	case <-r.issued:
		return r.current.Load(), nil
	case <-handshake.Context().Done():
		return nil, errors.New("certs: no client certificate has been issued yet")
	}
}
