package certs_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/kube/certs"
)

// The API server that issues the certificate may be a static pod of the node.
func TestAPendingRotationRequestsItsFirstCertificateWhenItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.fails = 3
		cfg := configIn(t, s)
		require.ErrorIs(t, cfg.Bootstrapped(), os.ErrNotExist)
		rotation, err := certs.NewPending(cfg)
		require.NoError(t, err)
		assert.Empty(t, s.names(), "nothing is started")
		assert.Zero(t, rotation.Expires())
		assert.Empty(t, rotation.Config().BearerToken, "the bootstrap token is for the request only")

		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- rotation.Run(ctx) }()
		time.Sleep(8 * time.Second)
		assert.NoError(t, cfg.Bootstrapped())
		assert.Equal(t, 24*time.Hour-time.Second, time.Until(rotation.Expires()))
		time.Sleep(24 * time.Hour)
		assert.Len(t, s.names(), 2, "the first one is renewed")
		cancel()
		assert.NoError(t, <-ran)
	})
}

func TestAPendingRotationEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.silent = true
		rotation, err := certs.NewPending(configIn(t, s))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.NoError(t, rotation.Run(ctx))
	})
}

func TestAPendingRotationWhoseRequestIsDeniedFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.deny = true
		rotation, err := certs.NewPending(configIn(t, s))
		require.NoError(t, err)
		assert.ErrorContains(t, rotation.Run(t.Context()), "was denied: Policy: not on a Friday")
	})
}

// Clients would otherwise use their back-off while a certificate is issued within a second.
func TestRequestsWaitForTheFirstCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("User", r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	s := newSigner(t)
	cfg := configIn(t, s)
	cfg.Bootstrap = func() (*rest.Config, error) {
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		return &rest.Config{Host: server.URL, BearerToken: "bootstrap", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, nil
	}
	rotation, err := certs.NewPending(cfg)
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(rotation.Config())
	require.NoError(t, err)
	get := func(ctx context.Context) (user string, err error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		res, err := client.Do(req)
		if err != nil {
			return "", err
		}
		return res.Header.Get("User"), res.Body.Close()
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = get(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	done := make(chan string, 1)
	go func() {
		user, err := get(t.Context())
		assert.NoError(t, err)
		done <- user
	}()
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- rotation.Run(ctx) }()
	assert.Equal(t, "system:node:n1", <-done)
	stop()
	assert.NoError(t, <-ran)
}
