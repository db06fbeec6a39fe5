package certificate_test

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/volume/certificate"
)

// A signer has requests and issues certificates for 24 hours on demand.
type signer struct {
	requests map[string]*certificatesv1.PodCertificateRequest
	last     string
	err      error // of the next requests
}

func (s *signer) CreatePodCertificateRequest(_ context.Context, pod *v1.Pod, spec certificatesv1.PodCertificateRequestSpec) (string, error) {
	if s.err != nil {
		return "", s.err
	}
	s.last = fmt.Sprint("req-", len(s.requests))
	s.requests[s.last] = &certificatesv1.PodCertificateRequest{Spec: spec}
	return s.last, nil
}

func (s *signer) PodCertificateRequest(namespace, name string) (*certificatesv1.PodCertificateRequest, error) {
	if r := s.requests[name]; r != nil && namespace == "default" {
		return r, nil
	}
	return nil, fs.ErrNotExist
}

func certificateOf(name string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(name)}))
}

func (s *signer) issue() {
	now := time.Now()
	s.requests[s.last].Status = certificatesv1.PodCertificateRequestStatus{
		Conditions:       []metav1.Condition{{Type: "Issued", Status: metav1.ConditionTrue}},
		CertificateChain: certificateOf(s.last),
		BeginRefreshAt:   &metav1.Time{Time: now.Add(12 * time.Hour)}, NotAfter: &metav1.Time{Time: now.Add(24 * time.Hour)},
	}
}

// A world is a cache, its signer and a source.
type world struct {
	*certificate.Cache
	signer *signer
	source certificate.Source
	events []string
}

func newWorld(t *testing.T) *world {
	w := &world{signer: &signer{requests: map[string]*certificatesv1.PodCertificateRequest{}}}
	var err error
	w.Cache, err = certificate.New(certificate.Config{Requests: w.signer})
	require.NoError(t, err)
	w.source = certificate.Source{
		Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}}, Volume: "tls",
		Projection: &v1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ED25519", MaxExpirationSeconds: new(int32(86400)), UserAnnotations: map[string]string{"example.com/a": "b"}},
		Warn:       func(reason, message string) { w.events = append(w.events, reason+": "+message) },
	}
	return w
}

func (w *world) bundle(t *testing.T) (certificate.Bundle, error) {
	t.Helper()
	return w.Bundle(t.Context(), w.source)
}

func (w *world) state(t *testing.T) string {
	t.Helper()
	counts := w.Counts()
	require.Len(t, counts, 1)
	require.Equal(t, certificate.Count{Signer: "example.com/s", State: counts[0].State, Sources: 1}, counts[0])
	return counts[0].State
}

// vol-58
func TestACertificateIsRequestedAndReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 2 {
			_, err := w.bundle(t)
			require.EqualError(t, err, "credential bundle is not issued yet")
		}
		assert.Equal(t, "not_yet_issued", w.state(t))
		require.Len(t, w.signer.requests, 1)
		spec := w.signer.requests["req-0"].Spec
		assert.Equal(t, "example.com/s", spec.SignerName)
		assert.Equal(t, int32(86400), *spec.MaxExpirationSeconds)
		assert.Equal(t, map[string]string{"example.com/a": "b"}, spec.UnverifiedUserAnnotations)

		w.signer.issue()
		first, err := w.bundle(t)
		require.NoError(t, err)
		assert.Equal(t, "fresh", w.state(t))
		assert.Equal(t, certificateOf("req-0"), string(first.Chain))
		left := time.Until(first.RefreshAt)
		assert.GreaterOrEqual(t, left, 12*time.Hour)
		assert.Less(t, left, 12*time.Hour+5*time.Minute, "the jitter")

		time.Sleep(left)
		second, err := w.bundle(t)
		require.NoError(t, err)
		assert.Equal(t, first.Chain, second.Chain, "the replacement is pending")
		assert.Equal(t, time.Minute, time.Until(second.RefreshAt))
		require.Len(t, w.signer.requests, 2)
		w.signer.issue()
		third, err := w.bundle(t)
		require.NoError(t, err)
		assert.Equal(t, certificateOf("req-1"), string(third.Chain))
		assert.NotEqual(t, first.Key, third.Key)
		assert.Empty(t, w.events)

		w.Forget("u1", "other")
		assert.Len(t, w.Counts(), 1)
		w.Forget("u1", "tls")
		assert.Empty(t, w.Counts())
	})
}

// The API server verifies the request; the key must be the one that it proves.
func TestEachTypeOfKeyProvesItsPossession(t *testing.T) {
	for keyType, algorithm := range map[string]string{
		"RSA3072": "SHA256-RSA", "RSA4096": "SHA256-RSA", "ECDSAP256": "ECDSA-SHA256", "ECDSAP384": "ECDSA-SHA384", "ECDSAP521": "ECDSA-SHA512", "ED25519": "Ed25519",
	} {
		w := newWorld(t)
		w.source.Projection.KeyType = keyType
		_, _ = w.bundle(t)
		csr, err := x509.ParseCertificateRequest(w.signer.requests["req-0"].Spec.StubPKCS10Request)
		require.NoError(t, err)
		require.NoError(t, csr.CheckSignature())
		assert.Equal(t, algorithm, csr.SignatureAlgorithm.String())
		assert.Empty(t, csr.Subject.String())
		w.signer.issue()
		bundle, err := w.bundle(t)
		require.NoError(t, err)
		block, rest := pem.Decode(bundle.Key)
		assert.Empty(t, rest)
		assert.Equal(t, "PRIVATE KEY", block.Type)
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		require.NoError(t, err)
		public := key.(crypto.Signer).Public().(interface{ Equal(crypto.PublicKey) bool })
		assert.True(t, public.Equal(csr.PublicKey), keyType)
	}
	w := newWorld(t)
	w.source.Projection.KeyType = "DSA"
	_, err := w.bundle(t)
	require.EqualError(t, err, `while generating keypair: unknown key type "DSA"`)
}

func TestARejectionIsFinal(t *testing.T) {
	for condition, want := range map[string]struct{ err, event, state string }{
		"Denied": {`PodCertificateRequest was permanently denied: reason="UnsupportedKeyType" message="use RSA"`,
			`Denied: PodCertificateRequest default/req-0 was denied, reason="UnsupportedKeyType", message="use RSA"`, "denied"},
		"Failed": {`PodCertificateRequest was permanently failed: reason="UnsupportedKeyType" message="use RSA"`,
			`Failed: PodCertificateRequest default/req-0 failed, reason="UnsupportedKeyType", message="use RSA"`, "failed"},
	} {
		w := newWorld(t)
		_, _ = w.bundle(t)
		w.signer.requests["req-0"].Status.Conditions = []metav1.Condition{{Type: condition, Reason: "UnsupportedKeyType", Message: "use RSA"}}
		for range 3 {
			_, err := w.bundle(t)
			require.EqualError(t, err, want.err)
		}
		assert.Equal(t, []string{want.event}, w.events)
		assert.Len(t, w.signer.requests, 1)
		assert.Equal(t, want.state, w.state(t))
	}
}

// A signer that does not respond, and an API server that does not: the certificate remains, with
// events.
func TestACertificateOutlivesItsSigner(t *testing.T) {
	for _, failing := range []error{nil, errors.New("connection refused")} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			_, _ = w.bundle(t)
			w.signer.issue()
			first, err := w.bundle(t)
			require.NoError(t, err)
			w.signer.err = failing
			begin, states := time.Now(), map[string]bool{}
			for next := first.RefreshAt; time.Since(begin) < 25*time.Hour; {
				time.Sleep(time.Until(next))
				b, err := w.bundle(t)
				require.NoError(t, err)
				require.Equal(t, first.Chain, b.Chain)
				require.GreaterOrEqual(t, time.Until(b.RefreshAt), time.Minute)
				next = b.RefreshAt
				states[w.state(t)] = true
			}
			assert.Equal(t, map[string]bool{"fresh": true, "overdue_for_refresh": true, "expired": true}, states)
			assert.Equal(t, []string{"CertificateOverdueForRefresh: PodCertificate refresh overdue", "CertificateExpired: PodCertificate expired"}, w.events)
			w.signer.err = nil
			time.Sleep(time.Minute)
			_, err = w.bundle(t)
			require.NoError(t, err)
			w.signer.issue()
			b, err := w.bundle(t)
			require.NoError(t, err)
			assert.NotEqual(t, first.Chain, b.Chain)
			assert.Equal(t, "fresh", w.state(t))
		})
	}
}

func TestADeletedRequestIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, _ = w.bundle(t)
		delete(w.signer.requests, "req-0")
		time.Sleep(10 * time.Minute)
		_, _ = w.bundle(t)
		assert.Empty(t, w.signer.requests, "it may not be observed yet")
		time.Sleep(5 * time.Minute)
		_, _ = w.bundle(t)
		assert.Len(t, w.signer.requests, 1)
	})
}

func TestAFirstRequestThatFailsIsAnError(t *testing.T) {
	w := newWorld(t)
	w.signer.err = errors.New("forbidden")
	_, err := w.bundle(t)
	require.EqualError(t, err, "while creating PodCertificateRequest: forbidden")
	w.signer.err = nil
	_, err = w.bundle(t)
	require.EqualError(t, err, "credential bundle is not issued yet")
}

// A volume that was never set up is not torn down either.
func TestSourcesThatAreNotReadAreDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, _ = w.bundle(t)
		time.Sleep(time.Hour)
		w.source.Volume = "other"
		_, _ = w.bundle(t)
		w.signer.issue()
		_, _ = w.bundle(t)
		assert.Equal(t, []certificate.Count{{Signer: "example.com/s", State: "fresh", Sources: 1}}, w.Counts())
		time.Sleep(6 * time.Hour)
		w.source.Volume = "third"
		_, _ = w.bundle(t)
		assert.Len(t, w.Counts(), 2, "it is read again in 6 hours")
	})
}

func TestNewChecksItsConfig(t *testing.T) {
	_, err := certificate.New(certificate.Config{})
	require.EqualError(t, err, "certificate: Config.Requests is nil")
}
