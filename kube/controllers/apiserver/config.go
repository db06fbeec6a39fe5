package apiserver

import (
	"crypto/x509"
	"errors"
	"net/http"
	"net/netip"
)

// A Config configures the server. The zero value permits everything, as a trusted network does.
type Config struct {
	// ServiceCIDR is the range of the cluster IPs of Services. Zero: 10.0.0.0/24.
	ServiceCIDR netip.Prefix

	// RBAC authorizes the requests to [Handler], and access reviews, by roles and bindings,
	// among them those that kube-apiserver creates. If false, everything is permitted.
	RBAC bool

	// ClientCAs are the authorities of client certificates for [Handler]. If nil, client
	// certificates are ignored.
	ClientCAs *x509.CertPool

	// TokenKey signs the tokens of ServiceAccounts: a *rsa.PrivateKey or *ecdsa.PrivateKey.
	// If nil, a new key is used.
	TokenKey any

	// Kubelet returns the handler of a kubelet's API for a node, nil if there is none, and the server
	// passes on requests for logs, commands, attach, port forwarding and the proxy of nodes.
	// Requests are authorized before. If nil, Server.Connect is used. Hollow nodes have such a
	// function: Kubelets of package kube/hollow.
	Kubelet func(node string) http.Handler

	// Issuer is the issuer and the audience of tokens. Empty: https://kubernetes.default.svc.
	Issuer string
}

// complete sets the defaults of cfg, or returns an error that names an invalid field.
func (cfg *Config) complete() error {
	if cfg.ServiceCIDR == (netip.Prefix{}) {
		cfg.ServiceCIDR = netip.MustParsePrefix("10.0.0.0/24")
	}
	if cfg.Issuer == "" {
		cfg.Issuer = "https://kubernetes.default.svc"
	}
	if !cfg.ServiceCIDR.IsValid() {
		return errors.New("apiserver: Config.ServiceCIDR is invalid")
	}
	return nil
}
