package certs_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/kube/certs"
)

// withServer starts a server that requires a client certificate and calls serve. It returns the rotation
// of the certificate of cfg, and a function that sends a request with that certificate.
func withServer(t *testing.T, cfg certs.Config, serve func(r *http.Request)) (rotation *certs.Rotation, get func()) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { serve(r) }))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	base, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
	require.NoError(t, err)
	base.Host, base.CAData = server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	rotation, err = certs.NewRotation(base, cfg)
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(rotation.Config())
	require.NoError(t, err)
	return rotation, func() {
		t.Helper()
		res, err := client.Get(server.URL)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
	}
}

// A connection would be used with the old certificate until it has expired, and longer.
func TestARenewalClosesTheConnectionsOfTheOldCertificate(t *testing.T) {
	s := newSigner(t)
	s.life = time.Second // due at once
	cfg := configIn(t, s)
	renewed := make(chan error, 10)
	cfg.Renewed = func(err error) { renewed <- err }
	require.NoError(t, certs.Bootstrap(t.Context(), cfg))

	var serials, addrs []string
	rotation, get := withServer(t, cfg, func(r *http.Request) {
		serials, addrs = append(serials, r.TLS.PeerCertificates[0].SerialNumber.String()), append(addrs, r.RemoteAddr)
	})
	get()
	s.mu.Lock()
	s.life = 24 * time.Hour
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() { done <- rotation.Run(ctx) }()
	require.NoError(t, <-renewed)
	cancel()
	require.NoError(t, <-done)
	get()
	require.Len(t, serials, 2)
	assert.NotEqual(t, serials[0], serials[1])
	assert.NotEqual(t, addrs[0], addrs[1])
}
