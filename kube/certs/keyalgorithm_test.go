package certs_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/certs"
)

func TestTheKeyOfARequestHasTheConfiguredAlgorithm(t *testing.T) {
	for algorithm, is := range map[certs.KeyAlgorithm]func(public any) bool{
		"":              isECDSA(elliptic.P256()),
		certs.ECDSAP256: isECDSA(elliptic.P256()),
		certs.ECDSAP384: isECDSA(elliptic.P384()),
		certs.RSA2048:   isRSA(2048),
		certs.RSA3072:   isRSA(3072),
		certs.RSA4096:   isRSA(4096),
	} {
		t.Run(string(algorithm), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSigner(t)
				cfg := configIn(t, s)
				cfg.KeyAlgorithm = algorithm
				require.NoError(t, certs.Bootstrap(t.Context(), cfg))
				assert.True(t, is(s.requests[0].PublicKey), "%T", s.requests[0].PublicKey)
				require.NoError(t, certs.Valid(cfg.Current(), "n1", time.Now()))
			})
		})
	}
}

func isECDSA(curve elliptic.Curve) func(any) bool {
	return func(public any) bool {
		key, ok := public.(*ecdsa.PublicKey)
		return ok && key.Curve == curve
	}
}

func isRSA(bits int) func(any) bool {
	return func(public any) bool {
		key, ok := public.(*rsa.PublicKey)
		return ok && key.N.BitLen() == bits
	}
}

func TestTheKeyOfAServingCertificateHasTheConfiguredAlgorithm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := newSigner(t), new(place)
		at.move("n1", net.IPv4(10, 0, 0, 1))
		cfg := servingConfig(t, s, at)
		cfg.KeyAlgorithm = certs.ECDSAP384
		runServing(t, cfg, func(*certs.Serving) { time.Sleep(time.Minute) })
		assert.True(t, isECDSA(elliptic.P384())(s.requests[0].PublicKey), "%T", s.requests[0].PublicKey)
	})
}

// The signers require key encipherment of RSA keys.
func TestARequestWithAnRSAKeyHasItsUsages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		cfg := configIn(t, s)
		cfg.KeyAlgorithm = certs.RSA2048
		require.NoError(t, certs.Bootstrap(t.Context(), cfg))
		req, err := s.client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), s.asked[0], metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth, certificatesv1.UsageKeyEncipherment}, req.Spec.Usages)
	})
}

func TestAnotherAlgorithmReplacesTheKeyOfAPendingRequestOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.silent = true
		cfg := configIn(t, s)
		bootstrap := func(algorithm certs.KeyAlgorithm) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cfg.KeyAlgorithm = algorithm
			return certs.Bootstrap(ctx, cfg)
		}
		require.ErrorIs(t, bootstrap(""), context.DeadlineExceeded)
		require.ErrorIs(t, bootstrap(certs.ECDSAP256), context.DeadlineExceeded)
		assert.Equal(t, s.requests[0].PublicKey, s.requests[1].PublicKey, "the request is continued")
		s.silent = false
		require.NoError(t, bootstrap(certs.ECDSAP384))
		assert.True(t, isECDSA(elliptic.P384())(s.requests[2].PublicKey))

		require.NoError(t, bootstrap(certs.RSA2048))
		assert.Len(t, s.names(), 3, "a valid certificate is used")
	})
}

func TestAnUnknownKeyAlgorithmIsAnError(t *testing.T) {
	cfg := configIn(t, newSigner(t))
	cfg.KeyAlgorithm = "RSA-1024"
	assert.EqualError(t, certs.Bootstrap(t.Context(), cfg), `certs: Config.KeyAlgorithm: unknown key algorithm "RSA-1024"`)
}
