package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/certs"
	"github.com/kubeparts/kubeparts/kube/hollow"
)

// clientCA returns the CA of the clients of the cluster's components, such as the API server's
// for kubelets.
func clientCA(ctx context.Context, api kubernetes.Interface) (*x509.CertPool, error) {
	const namespace, name, key = "kube-system", "extension-apiserver-authentication", "client-ca-file"
	config, err := api.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(config.Data[key])) {
		return nil, fmt.Errorf("ConfigMap %s/%s has no certificate in %s", namespace, name, key)
	}
	return pool, nil
}

// servePort returns a port at an address with a self-signed certificate, whose clients the API
// server authenticates and authorizes, as those of kubelets.
func servePort(ctx context.Context, config *rest.Config, ip string) (hollow.Port, error) {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return hollow.Port{}, err
	}
	reviews := rest.CopyConfig(config)
	reviews.QPS, reviews.Burst = 50, 100
	api, err := kubernetes.NewForConfig(reviews)
	if err != nil {
		return hollow.Port{}, err
	}
	roots, err := clientCA(ctx, api)
	if err != nil {
		return hollow.Port{}, fmt.Errorf("read the CA of clients: %w", err)
	}
	tokens, err := auth.NewTokens(auth.TokensConfig{Reviews: api.AuthenticationV1().TokenReviews()})
	if err != nil {
		return hollow.Port{}, err
	}
	access, err := auth.NewAccess(auth.AccessConfig{Reviews: api.AuthorizationV1().SubjectAccessReviews()})
	if err != nil {
		return hollow.Port{}, err
	}
	pair, err := certificate(address)
	if err != nil {
		return hollow.Port{}, err
	}
	ca := func() *x509.CertPool { return roots }
	port := hollow.Port{IP: address, Authenticator: auth.Chain{auth.Certificates{Roots: ca}, tokens}, Authorizer: access}
	port.TLS.ClientCAs = ca
	port.TLS.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
	return port, nil
}

// certificate creates a self-signed serving certificate.
func certificate(ip netip.Addr) (tls.Certificate, error) {
	dir, err := os.MkdirTemp("", "hollow-")
	if err != nil {
		return tls.Certificate{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // of the process
	cert, key, err := certs.SelfSigned(filepath.Join(dir, "pki"), []string{"hollow"}, []net.IP{ip.AsSlice()})
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.LoadX509KeyPair(cert, key)
}
