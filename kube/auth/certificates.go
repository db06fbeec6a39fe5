package auth

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Certificates knows users by the certificates that they show: the common name
// is theirs, the organizations are their groups.
type Certificates struct {
	// Roots returns those who sign certificates of users. Required. It is
	// called with each request that has a certificate, so that a bundle may be
	// replaced at any time; it must be quick.
	Roots func() *x509.CertPool
}

// Authenticate implements Authenticator. The server has to ask for certificates
// (tls.RequestClientCert) and leave it to this to verify them.
func (c Certificates) Authenticate(r *http.Request) (*User, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	if c.Roots == nil {
		return nil, errors.New("auth: Certificates.Roots is nil")
	}
	roots := c.Roots()
	if roots == nil {
		return nil, errors.New("auth: nobody is known who signs certificates of users") // never those of the system
	}
	between := x509.NewCertPool()
	for _, cert := range r.TLS.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	leaf := r.TLS.PeerCertificates[0]
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("auth: certificate of %q: %w", leaf.Subject.CommonName, err)
	}
	if leaf.Subject.CommonName == "" {
		return nil, nil
	}
	return &User{Name: leaf.Subject.CommonName, Groups: in(leaf.Subject.Organization, AuthenticatedGroup)}, nil
}
