package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/server"
)

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	ca := newIssuer(t, "ca")
	pair, err := tls.X509KeyPair(ca.sign("n1", x509.ExtKeyUsageServerAuth))
	require.NoError(t, err)
	certificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	for name, tt := range map[string]struct {
		least    uint16
		accepted map[uint16]bool
	}{
		"by default": {0, map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true}},
		"configured": {tls.VersionTLS13, map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: false, tls.VersionTLS13: true}},
		"lowered":    {tls.VersionTLS11, map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: true, tls.VersionTLS12: true}},
	} {
		t.Run(name, func(t *testing.T) {
			addr := listen(t, server.ListenerConfig{Handler: http.NotFoundHandler(), TLS: server.TLSConfig{Certificate: certificate, MinVersion: tt.least}})
			for version, accepted := range tt.accepted {
				conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, MinVersion: version, MaxVersion: version})
				if err == nil {
					assert.Equal(t, version, conn.ConnectionState().Version)
					_ = conn.Close()
				}
				assert.Equal(t, accepted, err == nil, "%s: %v", tls.VersionName(version), err)
			}
		})
	}
}
