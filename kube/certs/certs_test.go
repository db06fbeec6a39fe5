package certs_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
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
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/kube/certs"
)

// A signer is a cluster that signs every request.
type signer struct {
	t    *testing.T
	ca   *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
	life time.Duration
	deny bool

	mu       sync.Mutex // guards the fields below
	asked    []string   // names of requests
	by       []*rest.Config
	requests []*x509.CertificateRequest
	fails    int // so many requests fail first
	silent   bool

	forgetful bool // it signs no names
	client    *fake.Clientset
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	ca, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	s := &signer{t: t, ca: ca, key: key, life: 24 * time.Hour, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	s.client = fake.NewClientset()
	s.client.PrependReactor("create", "certificatesigningrequests", s.create)
	return s
}

func (s *signer) config() *rest.Config {
	return &rest.Config{Host: "https://127.0.0.1:1", BearerToken: "bootstrap", TLSClientConfig: rest.TLSClientConfig{CAData: s.pem}}
}

func (s *signer) bootstrap() (*rest.Config, error) { return s.config(), nil }

func (s *signer) clientFor(c *rest.Config) (kubernetes.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = append(s.by, c)
	return s.client, nil
}

// create answers a request in the act of making it.
func (s *signer) create(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails > 0 {
		s.fails--
		return true, nil, errors.New("connection refused")
	}
	req := action.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest).DeepCopy()
	if req.Name == "" {
		req.Name = req.GenerateName + "x"
	}
	if n := len(s.asked); n > 0 {
		// The fake does not filter by name.
		_ = s.client.Tracker().Delete(certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), "", s.asked[n-1])
	}
	s.asked = append(s.asked, req.Name)
	block, _ := pem.Decode(req.Spec.Request)
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return true, nil, err
	}
	s.requests = append(s.requests, parsed)
	req.UID = types.UID(fmt.Sprintf("u%d", len(s.asked)))
	condition := certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: v1.ConditionTrue}
	switch {
	case s.deny:
		condition.Type, condition.Reason, condition.Message = certificatesv1.CertificateDenied, "Policy", "not on a Friday"
		req.Status.Conditions = append(req.Status.Conditions, condition)
	case !s.silent:
		cert := s.signLocked(parsed.PublicKey, parsed.Subject, time.Now(), s.life)
		req.Status.Conditions, req.Status.Certificate = append(req.Status.Conditions, condition), cert
	}
	if err := s.client.Tracker().Add(req); err != nil {
		return true, nil, err
	}
	return true, req, nil
}

func (s *signer) signLocked(public any, subject pkix.Name, from time.Time, life time.Duration) []byte {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(s.asked)) + 2), Subject: subject, NotBefore: from, NotAfter: from.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if n := len(s.requests); n > 0 && !s.forgetful {
		template.DNSNames, template.IPAddresses = s.requests[n-1].DNSNames, s.requests[n-1].IPAddresses
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.ca, public, s.key)
	if err != nil {
		s.t.Error(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (s *signer) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

func configIn(t *testing.T, s *signer) certs.Config {
	t.Helper()
	dir := t.TempDir()
	return certs.Config{NodeName: "n1", Dir: filepath.Join(dir, "pki"), Kubeconfig: filepath.Join(dir, "kubeconfig"), Bootstrap: s.bootstrap, Client: s.clientFor, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

func TestANodeGetsItsFirstCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		cfg := configIn(t, s)
		cfg.Lifetime = time.Hour
		require.NoError(t, certs.Bootstrap(t.Context(), cfg))
		assert.Equal(t, "system:node:n1", s.requests[0].Subject.CommonName)
		assert.Equal(t, []string{"system:nodes"}, s.requests[0].Subject.Organization)
		req, err := s.client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), s.asked[0], metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, certificatesv1.KubeAPIServerClientKubeletSignerName, req.Spec.SignerName)
		assert.Equal(t, []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, req.Spec.Usages)
		assert.EqualValues(t, 3600, *req.Spec.ExpirationSeconds)

		require.NoError(t, certs.Valid(cfg.Current(), "n1", time.Now()))
		made, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
		require.NoError(t, err)
		assert.Equal(t, s.config().Host, made.Host)
		assert.Equal(t, s.config().CAData, made.CAData)
		assert.Equal(t, cfg.Current(), made.CertFile)
		assert.Empty(t, made.BearerToken, "the token is not needed any more")
		for _, file := range []string{cfg.Kubeconfig, cfg.Current()} {
			info, err := os.Stat(file)
			require.NoError(t, err)
			assert.Zero(t, info.Mode().Perm()&0o077, "%s is readable by other users", file)
		}
		left, err := filepath.Glob(filepath.Join(cfg.Dir, "*.tmp"))
		require.NoError(t, err)
		assert.Empty(t, left)

		require.NoError(t, certs.Bootstrap(t.Context(), cfg))
		assert.Len(t, s.names(), 1, "a valid certificate is used")
	})
}

func TestAFirstCertificateIsRequestedUntilItIsIssued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.fails = 3
		begun := time.Now()
		require.NoError(t, certs.Bootstrap(t.Context(), configIn(t, s)))
		assert.Equal(t, 7*time.Second, time.Since(begun).Round(time.Second))
	})
}

func TestARestartedAgentRepeatsTheSameRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.silent = true
		cfg := configIn(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, certs.Bootstrap(ctx, cfg), context.DeadlineExceeded)
		s.silent = false
		first := s.names()[0]
		require.NoError(t, certs.Bootstrap(t.Context(), cfg))
		assert.Equal(t, []string{first, first}, s.names(), "the same key, and the same name")
	})
}

func TestARequestThatWasDeniedIsNotMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.deny = true
		cfg := configIn(t, s)
		err := certs.Bootstrap(t.Context(), cfg)
		require.ErrorContains(t, err, "was denied: Policy: not on a Friday")
		assert.Len(t, s.names(), 1)
		assert.NoFileExists(t, cfg.Kubeconfig)
	})
}

func TestAnUnusableCertificateIsReplaced(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, s *signer, cfg *certs.Config){
		"expired":            func(*testing.T, *signer, *certs.Config) { time.Sleep(25 * time.Hour) },
		"another node's":     func(_ *testing.T, _ *signer, cfg *certs.Config) { cfg.NodeName = "n2" },
		"no certificate":     func(t *testing.T, _ *signer, cfg *certs.Config) { require.NoError(t, os.Remove(cfg.Current())) },
		"half a certificate": func(t *testing.T, _ *signer, cfg *certs.Config) { require.NoError(t, os.Truncate(cfg.Current(), 100)) },
		"half a kubeconfig":  func(t *testing.T, _ *signer, cfg *certs.Config) { require.NoError(t, os.Truncate(cfg.Kubeconfig, 50)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSigner(t)
				cfg := configIn(t, s)
				require.NoError(t, certs.Bootstrap(t.Context(), cfg))
				damage(t, s, &cfg)
				require.NoError(t, certs.Bootstrap(t.Context(), cfg))
				assert.Len(t, s.names(), 2)
				require.NoError(t, certs.Valid(cfg.Current(), cfg.NodeName, time.Now()))
			})
		})
	}
}

func TestAForeignKubeconfigIsLeftAlone(t *testing.T) {
	s := newSigner(t)
	cfg := configIn(t, s)
	data := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":"t"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`
	require.NoError(t, os.WriteFile(cfg.Kubeconfig, []byte(data), 0o600))
	require.NoError(t, certs.Bootstrap(t.Context(), cfg))
	assert.Empty(t, s.names())
}

func TestWithoutAConnectionThereIsAnError(t *testing.T) {
	cfg := configIn(t, newSigner(t))
	cfg.Bootstrap = nil
	assert.ErrorContains(t, certs.Bootstrap(t.Context(), cfg), "Config.Bootstrap is nil")
	cfg.Kubeconfig = ""
	assert.ErrorContains(t, certs.Bootstrap(t.Context(), cfg), "Kubeconfig is empty")
	_, err := certs.NewRotation(nil, cfg)
	assert.ErrorContains(t, err, "nil")
	_, err = certs.NewRotation(&rest.Config{}, certs.Config{Dir: t.TempDir()})
	assert.ErrorContains(t, err, "NodeName")
}

func TestACertificateIsRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		cfg := configIn(t, s)
		var renewed, failed atomic.Int32
		cfg.Renewed = func(err error) {
			if err != nil {
				failed.Add(1)
			} else {
				renewed.Add(1)
			}
		}
		require.NoError(t, certs.Bootstrap(t.Context(), cfg))
		first, err := os.ReadFile(cfg.Current())
		require.NoError(t, err)
		base, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
		require.NoError(t, err)
		rotation, err := certs.NewRotation(base, cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- rotation.Run(ctx) }()
		time.Sleep(16 * time.Hour)
		synctest.Wait()
		assert.Len(t, s.names(), 1, "not before 70 percent of its lifetime")
		time.Sleep(6 * time.Hour)
		synctest.Wait()
		assert.Len(t, s.names(), 2, "but before 90 are")
		now, err := os.ReadFile(cfg.Current())
		require.NoError(t, err)
		assert.NotEqual(t, first, now)
		assert.EqualValues(t, 1, renewed.Load())
		assert.Zero(t, failed.Load())
		require.NoError(t, certs.Valid(cfg.Current(), "n1", time.Now().Add(12*time.Hour)))
		assert.Empty(t, s.by[len(s.by)-1].BearerToken, "requested with the node's own certificate")

		// Without a response it is retried; if the certificate has expired meanwhile,
		// it is requested with the token, as at first.
		s.mu.Lock()
		s.fails = 5000
		s.mu.Unlock()
		time.Sleep(30 * time.Hour)
		synctest.Wait()
		s.mu.Lock()
		assert.NotEmpty(t, s.by[len(s.by)-1].BearerToken)
		assert.Greater(t, s.fails, 5000-2*20*60, "twice a minute for at most 20 hours, which the luck of the times decides")
		s.fails = 0
		s.mu.Unlock()
		time.Sleep(time.Minute)
		require.NoError(t, certs.Valid(cfg.Current(), "n1", time.Now()))
		assert.True(t, rotation.Expires().After(time.Now()))
		assert.EqualValues(t, 2, renewed.Load())
		assert.Positive(t, failed.Load())
		cancel()
		require.NoError(t, <-done)
		require.EqualError(t, rotation.Run(ctx), "certs: Rotation.Run was called before")
	})
}

// With a node clock that is ahead, a new certificate may be due for renewal at once.
func TestACertificateThatIsDueAtOnceIsNoHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		cfg := configIn(t, s)
		require.NoError(t, certs.Bootstrap(t.Context(), cfg))
		base, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
		require.NoError(t, err)
		rotation, err := certs.NewRotation(base, cfg)
		require.NoError(t, err)
		s.mu.Lock()
		s.life = time.Millisecond
		s.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		time.Sleep(24 * time.Hour) // the first one has ended meanwhile
		go func() { done <- rotation.Run(ctx) }()
		time.Sleep(time.Hour)
		cancel()
		require.NoError(t, <-done)
		assert.LessOrEqual(t, len(s.names()), 62, "one a minute")
	})
}

func TestNewConnectionsShowTheCertificateOfTheMoment(t *testing.T) {
	s := newSigner(t)
	cfg := configIn(t, s)
	require.NoError(t, certs.Bootstrap(t.Context(), cfg))

	var seen []string
	rotation, get := withServer(t, cfg, func(r *http.Request) {
		seen = append(seen, r.TLS.PeerCertificates[0].Subject.CommonName+" "+r.RemoteAddr)
	})
	get()
	get()
	rotation.CloseConnections()
	get()
	require.Len(t, seen, 3)
	assert.Contains(t, seen[0], "system:node:n1 ")
	assert.Equal(t, seen[0], seen[1], "one connection")
	assert.NotEqual(t, seen[1], seen[2], "and then another one")
}
