package certs_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/certs"
)

// A place is where a node is reached.
type place struct {
	mu    sync.Mutex
	names []string
	ips   []net.IP
}

func (p *place) is() ([]string, []net.IP) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names, p.ips
}

func (p *place) move(name string, ips ...net.IP) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names, p.ips = []string{name}, ips
}

func servingConfig(t *testing.T, s *signer, at *place) certs.ServingConfig {
	t.Helper()
	return certs.ServingConfig{NodeName: "n1", Dir: t.TempDir(), Client: s.client, Addresses: at.is, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

// runServing runs one while test does its work.
func runServing(t *testing.T, cfg certs.ServingConfig, test func(*certs.Serving)) {
	t.Helper()
	serving, err := certs.NewServing(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- serving.Run(ctx) }()
	test(serving)
	cancel()
	require.NoError(t, <-done)
	require.EqualError(t, serving.Run(ctx), "certs: Serving.Run was called before")
}

// sv-2: a serving certificate is requested with the signer
// kubernetes.io/kubelet-serving, for the node's addresses.
func TestANodeGetsAServingCertificateOnceItHasAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := newSigner(t), new(place)
		cfg := servingConfig(t, s, at)
		runServing(t, cfg, func(serving *certs.Serving) {
			time.Sleep(time.Hour)
			assert.Empty(t, s.names(), "there is nothing that it could be for")
			_, err := serving.Certificate(nil)
			require.ErrorContains(t, err, "no serving certificate")

			at.move("n1.local", net.IPv4(10, 0, 0, 2), net.IPv4(10, 0, 0, 1))
			time.Sleep(time.Minute)
			is, err := serving.Certificate(nil)
			require.NoError(t, err)
			assert.Equal(t, []string{"n1.local"}, is.Leaf.DNSNames)
			assert.Len(t, is.Leaf.IPAddresses, 2)
			req, err := s.client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), s.names()[0], metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, certificatesv1.KubeletServingSignerName, req.Spec.SignerName)
			assert.Equal(t, []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}, req.Spec.Usages)
			assert.Equal(t, "system:node:n1", s.requests[0].Subject.CommonName)
			assert.Equal(t, []string{"system:nodes"}, s.requests[0].Subject.Organization)
			assert.FileExists(t, filepath.Join(cfg.Dir, "kubelet-server-current.pem"))
		})
		was := len(s.names())
		runServing(t, cfg, func(serving *certs.Serving) {
			_, err := serving.Certificate(nil)
			require.NoError(t, err, "the one of before")
			time.Sleep(time.Minute)
			assert.Len(t, s.names(), was)
		})
	})
}

func TestAServingCertificateIsRenewedAndFollowsTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := newSigner(t), new(place)
		s.life = 100 * time.Hour
		at.move("n1", net.IPv4(10, 0, 0, 1))
		runServing(t, servingConfig(t, s, at), func(serving *certs.Serving) {
			time.Sleep(69 * time.Hour)
			assert.Len(t, s.names(), 1)
			time.Sleep(22 * time.Hour)
			assert.Len(t, s.names(), 2, "renewed between 70 and 90 % of its time")
			at.move("n1", net.IPv4(10, 0, 0, 9))
			time.Sleep(time.Minute)
			assert.Len(t, s.names(), 3)
			is, err := serving.Certificate(nil)
			require.NoError(t, err)
			assert.True(t, is.Leaf.IPAddresses[0].Equal(net.IPv4(10, 0, 0, 9)))
		})
	})
}

func TestAServingCertificateIsRequestedUntilItIsIssued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := newSigner(t), new(place)
		at.move("n1", net.IPv4(10, 0, 0, 1))
		s.deny, s.fails = true, 3
		cfg := servingConfig(t, s, at)
		var renewed, failed atomic.Int32
		cfg.Renewed = func(err error) {
			if err != nil {
				failed.Add(1)
			} else {
				renewed.Add(1)
			}
		}
		runServing(t, cfg, func(serving *certs.Serving) {
			time.Sleep(10 * time.Minute)
			assert.Zero(t, serving.Expires())
			assert.Zero(t, renewed.Load())
			assert.Greater(t, failed.Load(), int32(3))
			asked := len(s.names())
			assert.InDelta(t, 20, asked, 6, "twice a minute at most")
			_, err := serving.Certificate(nil)
			assert.Error(t, err)
			s.mu.Lock()
			s.deny = false
			s.mu.Unlock()
			time.Sleep(time.Minute)
			_, err = serving.Certificate(nil)
			assert.NoError(t, err)
			assert.EqualValues(t, 1, renewed.Load())
			assert.True(t, serving.Expires().After(time.Now()))
		})
	})
}

// A signer that omits names would omit them again: it is not called in a loop.
func TestASignerThatOmitsNamesIsNotCalledRepeatedly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := newSigner(t), new(place)
		s.forgetful = true
		at.move("n1", net.IPv4(10, 0, 0, 1))
		runServing(t, servingConfig(t, s, at), func(serving *certs.Serving) {
			time.Sleep(10 * time.Minute)
			assert.InDelta(t, 20, len(s.names()), 1, "twice a minute: the signer may be mended")
			_, err := serving.Certificate(nil)
			assert.NoError(t, err, "the certificate is used meanwhile")
		})
	})
}

func TestServingRequiresItsConfig(t *testing.T) {
	s, at := newSigner(t), new(place)
	for want, change := range map[string]func(*certs.ServingConfig){
		"ServingConfig.Client is nil":    func(c *certs.ServingConfig) { c.Client = nil },
		"ServingConfig.Addresses is nil": func(c *certs.ServingConfig) { c.Addresses = nil },
		"NodeName is empty":              func(c *certs.ServingConfig) { c.NodeName = "" },
		"Dir is empty":                   func(c *certs.ServingConfig) { c.Dir = "" },
	} {
		cfg := servingConfig(t, s, at)
		change(&cfg)
		_, err := certs.NewServing(cfg)
		assert.ErrorContains(t, err, want)
	}
}

// sv-2: the files of a self-signed certificate are the kubelet's.
func TestASelfSignedCertificateIsMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	cert, key, err := certs.SelfSigned(dir, []string{"n1"}, []net.IP{net.IPv4(10, 0, 0, 1)})
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(dir, "kubelet.crt"), filepath.Join(dir, "kubelet.key")}, []string{cert, key})
	info, err := os.Stat(key)
	require.NoError(t, err)
	assert.Zero(t, info.Mode().Perm()&0o077)
	first, err := os.ReadFile(cert)
	require.NoError(t, err)
	_, _, err = certs.SelfSigned(dir, []string{"n1"}, nil)
	require.NoError(t, err)
	again, err := os.ReadFile(cert)
	require.NoError(t, err)
	assert.Equal(t, first, again)
	require.NoError(t, os.Truncate(key, 10))
	_, _, err = certs.SelfSigned(dir, []string{"n1"}, nil)
	require.NoError(t, err)
	again, err = os.ReadFile(cert)
	require.NoError(t, err)
	assert.NotEqual(t, first, again)
}

// sv-2: The addresses of a machine are often found only after the request: the node must not wait for the
// approval of a certificate that approvers refuse.
func TestAPendingServingRequestIsReplacedWhenTheAddressesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := newSigner(t), new(place)
		at.move("n1", net.IPv4(10, 0, 0, 1))
		s.silent = true
		cfg := servingConfig(t, s, at)
		var failed atomic.Int32
		cfg.Renewed = func(err error) {
			if err != nil {
				failed.Add(1)
			}
		}
		runServing(t, cfg, func(serving *certs.Serving) {
			time.Sleep(time.Minute)
			assert.Len(t, s.names(), 1, "the same addresses, the same request")
			s.mu.Lock()
			s.silent = false
			s.mu.Unlock()
			at.move("n1", net.IPv4(10, 0, 0, 9))
			time.Sleep(5 * time.Second)
			assert.Len(t, s.names(), 2)
			is, err := serving.Certificate(nil)
			require.NoError(t, err)
			assert.True(t, is.Leaf.IPAddresses[0].Equal(net.IPv4(10, 0, 0, 9)))
			assert.Zero(t, failed.Load(), "a change of addresses is no failure")
		})
	})
}

// The Node object may have the name before the addresses.
func TestAServingCertificateIsNotRequestedForANameOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := newSigner(t), new(place)
		at.move("n1")
		runServing(t, servingConfig(t, s, at), func(serving *certs.Serving) {
			time.Sleep(time.Hour)
			assert.Empty(t, s.names())
			at.move("n1", net.IPv4(10, 0, 0, 1))
			time.Sleep(5 * time.Second)
			_, err := serving.Certificate(nil)
			assert.NoError(t, err)
		})
	})
}

func TestAServingCertificateForANameOnlyCanBePermitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := newSigner(t), new(place)
		at.move("n1")
		cfg := servingConfig(t, s, at)
		cfg.AllowDNSOnly = true
		runServing(t, cfg, func(serving *certs.Serving) {
			time.Sleep(5 * time.Second)
			is, err := serving.Certificate(nil)
			require.NoError(t, err)
			assert.Equal(t, []string{"n1"}, is.Leaf.DNSNames)
		})
	})
}
