package auth

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Certificates authenticates users by client certificates: the common name is the name of
// the user, and the organizations are the groups.
type Certificates struct {
	// Roots returns the CAs of client certificates. Required. It is called for each request
	// with a certificate, so that the CAs can be replaced, and must not block.
	Roots func() *x509.CertPool
}

// Authenticate implements Authenticator. The server must request client certificates
// without verifying them (tls.RequestClientCert). It returns an error if the certificate is
// invalid.
func (c Certificates) Authenticate(r *http.Request) (*User, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	if c.Roots == nil {
		return nil, errors.New("auth: Certificates.Roots is nil")
	}
	roots := c.Roots()
	if roots == nil {
		return nil, errors.New("auth: no CA of client certificates") // the system roots must not be used
	}
	intermediates := x509.NewCertPool()
	for _, cert := range r.TLS.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	leaf := r.TLS.PeerCertificates[0]
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("auth: certificate of %q: %w", leaf.Subject.CommonName, err)
	}
	if leaf.Subject.CommonName == "" {
		return nil, nil
	}
	return &User{Name: leaf.Subject.CommonName, Groups: withGroup(leaf.Subject.Organization, AuthenticatedGroup)}, nil
}
