package edge

import (
	"crypto/tls"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
	"github.com/kubeparts/kubeparts/kube/server"
)

func TestTLS(t *testing.T) {
	for lines, want := range map[string]string{
		"tlsMinVersion: TLS13\n":        "tlsMinVersion: ",
		"tlsCipherSuites: [NONE]\n":     "tlsCipherSuites: ",
		"tlsCurvePreferences: [9999]\n": "tlsCurvePreferences: unknown key exchange 9999",
	} {
		_, err := setTLS(wingtest.Decode(t, lines), new(server.TLSConfig))
		assert.ErrorContains(t, err, want)
	}
	var cfg server.TLSConfig
	warnings, err := setTLS(wingtest.Decode(t, "tlsMinVersion: VersionTLS13\ntlsCurvePreferences: [29]\n"), &cfg)
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.EqualValues(t, tls.VersionTLS13, cfg.MinVersion)
	assert.Equal(t, []tls.CurveID{tls.X25519}, cfg.Curves)
	_, err = setTLS(wingtest.Decode(t, ""), &cfg)
	require.NoError(t, err)
	assert.Zero(t, cfg.MinVersion, "the default of package server")

	// The kubelet accepts these, and logs a warning.
	warnings, err = setTLS(wingtest.Decode(t, "tlsMinVersion: VersionTLS11\ntlsCipherSuites: [TLS_RSA_WITH_RC4_128_SHA, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n"), new(server.TLSConfig))
	require.NoError(t, err)
	assert.Equal(t, []string{"tlsMinVersion: VersionTLS11 is insecure; want VersionTLS12 or VersionTLS13", "tlsCipherSuites: TLS_RSA_WITH_RC4_128_SHA is insecure"}, warnings)
}

func TestServingCertificate(t *testing.T) { // sv-2
	for lines, want := range map[string]string{
		"serverTLSBootstrap: true\n":                         "serverTLSBootstrap: there is no API server",
		"tlsCertFile: /a\n":                                  "only one of tlsCertFile and tlsPrivateKeyFile is set",
		"tlsPrivateKeyFile: /a\n":                            "only one of tlsCertFile and tlsPrivateKeyFile is set",
		"tlsCertFile: /none/a\ntlsPrivateKeyFile: /none/b\n": "tlsCertFile: server: open ",
	} {
		_, err := newServing(wingtest.Base(t, wingtest.Standalone(t, lines)), nil, nil)
		assert.ErrorContains(t, err, want)
	}
	b := wingtest.Base(t, wingtest.Standalone(t, ""))
	s, err := newServing(b, nil, []string{"10.0.0.1"})
	require.NoError(t, err)
	assert.Empty(t, s.Run)
	assert.Nil(t, s.Expires)
	cert, err := s.Certificate(nil)
	require.NoError(t, err)
	assert.Equal(t, "n1", cert.Leaf.Subject.CommonName)
	require.Len(t, cert.Leaf.IPAddresses, 1)
	assert.Equal(t, "10.0.0.1", cert.Leaf.IPAddresses[0].String())
	assert.FileExists(t, filepath.Join(b.Config.RootDir, "pki", "kubelet.crt"))
}
