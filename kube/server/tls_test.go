package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/server"
)

// An issuer signs certificates.
type issuer struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newIssuer(t testing.TB, name string) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &issuer{t, cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// sign returns a certificate and its key, in PEM, for a client or a server at
// 127.0.0.1.
func (i *issuer) sign(name string, usage x509.ExtKeyUsage) (cert, key []byte) {
	i.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(i.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.cert, private.Public(), i.key)
	require.NoError(i.t, err)
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(i.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes})
}

// client returns a client with a certificate for that user, unless by is nil.
func (i *issuer) client(by *issuer, who string) *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(i.cert)
	cfg := &tls.Config{RootCAs: roots}
	if by != nil {
		pair, err := tls.X509KeyPair(by.sign(who, x509.ExtKeyUsageClientAuth))
		require.NoError(i.t, err)
		cfg.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	i.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 90 * time.Second}
}

// write puts files into a directory.
func write(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
}

// listen serves on a separate port until the test ends, and returns its address.
func listen(t testing.TB, cfg server.ListenerConfig) string {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg.Listener = on
	l, err := server.NewListener(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return l.Addr().String()
}

// sv-2, sv-13: unauthenticated, of the wrong CA, unauthorized, and a client that may
// only read: 401 and 403, over TLS.
func TestRejectedClientsOverTLS(t *testing.T) {
	ca, other := newIssuer(t, "ca"), newIssuer(t, "other")
	dir := t.TempDir()
	cert, key := ca.sign("n1", x509.ExtKeyUsageServerAuth)
	write(t, dir, map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": ca.pem})
	pair, err := server.NewKeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), nil)
	require.NoError(t, err)
	roots, err := server.NewCAFile(filepath.Join(dir, "ca.crt"), nil)
	require.NoError(t, err)
	s := newServer(t, func(c *server.Config) {
		c.Authenticator = auth.Chain{auth.Certificates{Roots: roots.Roots}}
		c.Authorizer = may{"reader": {"get nodes/proxy"}, "lister": {"get nodes/pods"}}
	})
	addr := listen(t, server.ListenerConfig{Handler: s, TLS: server.TLSConfig{Certificate: pair.Certificate, ClientCAs: roots.Roots}})
	for _, c := range []struct {
		what, path string
		client     *http.Client
		code       int
		proto      int
	}{
		{"no certificate", "/pods", ca.client(nil, ""), 401, 2},
		{"of the wrong CA", "/pods", insisting(ca.client(other, "lister")), 401, 2},
		{"a server's certificate", "/pods", serverAsClient(ca, cert, key), 401, 2},
		{"not authorized", "/pods", ca.client(ca, "nobody"), 403, 2},
		{"may only read", "/exec/ns/pod/c?command=id&output=1", ca.client(ca, "reader"), 403, 2},
		{"authorized", "/pods", ca.client(ca, "lister"), 200, 2},
		{"authorized", "/pods", ca.client(ca, "reader"), 200, 2},
	} {
		answer, err := c.client.Get("https://" + addr + c.path)
		require.NoError(t, err, c.what)
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		assert.Equal(t, c.code, answer.StatusCode, c.what)
		assert.Equal(t, c.proto, answer.ProtoMajor, c.what)
	}
	answer, err := http.Get("http://" + addr + "/pods") // not encrypted
	require.NoError(t, err)
	assert.Equal(t, 400, answer.StatusCode)
	_ = answer.Body.Close()
}

// insisting returns a client that shows its certificate also to a server that names other
// CAs.
func insisting(client *http.Client) *http.Client {
	cfg := client.Transport.(*http.Transport).TLSClientConfig
	pair := cfg.Certificates[0]
	cfg.Certificates = nil
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return client
}

// A client that has a certificate is anonymous where no client CA is configured, and where
// the server names other CAs, as with a kubelet: API servers show theirs to all nodes.
func TestAClientWithACertificateCanBeAnonymous(t *testing.T) {
	ca, other := newIssuer(t, "ca"), newIssuer(t, "other")
	pair, err := tls.X509KeyPair(ca.sign("n1", x509.ExtKeyUsageServerAuth))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	get := func(cfg server.ListenerConfig, chain auth.Chain, client *http.Client) (code, proto int) {
		cfg.Handler = newServer(t, func(c *server.Config) { c.Authenticator = append(chain, auth.Anonymous{}) })
		cfg.TLS.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
		answer, err := client.Get("https://" + listen(t, cfg) + "/pods")
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode, answer.ProtoMajor
	}
	code, proto := get(server.ListenerConfig{}, nil, insisting(ca.client(other, "kube-apiserver")))
	assert.Equal(t, http.StatusOK, code, "no certificate is requested")
	assert.Equal(t, 2, proto)
	withCA := server.ListenerConfig{TLS: server.TLSConfig{ClientCAs: func() *x509.CertPool { return roots }}}
	chain := auth.Chain{auth.Certificates{Roots: withCA.TLS.ClientCAs}}
	code, _ = get(withCA, chain, ca.client(other, "kube-apiserver"))
	assert.Equal(t, http.StatusOK, code, "a client has none of the CAs that the server names")
	code, _ = get(withCA, chain, insisting(ca.client(other, "kube-apiserver")))
	assert.Equal(t, http.StatusUnauthorized, code, "a certificate of an unknown CA is not anonymous")
	code, proto = get(withCA, chain, ca.client(ca, "kube-apiserver"))
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, 2, proto)
}

func serverAsClient(ca *issuer, cert, key []byte) *http.Client {
	client := ca.client(ca, "x")
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(ca.t, err)
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
	return client
}

// sv-2: the configuration determines versions and ciphers.
func TestTLSFollowsTheConfiguration(t *testing.T) {
	ca := newIssuer(t, "ca")
	pair, err := tls.X509KeyPair(ca.sign("n1", x509.ExtKeyUsageServerAuth))
	require.NoError(t, err)
	shown := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
	suites, err := server.CipherSuites([]string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"})
	require.NoError(t, err)
	version, err := server.TLSVersion("VersionTLS13")
	require.NoError(t, err)
	dial := func(addr string, most uint16) (tls.ConnectionState, error) {
		c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: most, MinVersion: tls.VersionTLS10})
		if err != nil {
			return tls.ConnectionState{}, err
		}
		defer c.Close()
		return c.ConnectionState(), nil
	}
	first := listen(t, server.ListenerConfig{Handler: ok(t), TLS: server.TLSConfig{Certificate: shown, CipherSuites: suites}})
	_, err = dial(first, tls.VersionTLS11)
	assert.Error(t, err, "1.2 is the minimum by default")
	got, err := dial(first, tls.VersionTLS12)
	require.NoError(t, err)
	assert.Equal(t, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, got.CipherSuite)
	second := listen(t, server.ListenerConfig{Handler: ok(t), TLS: server.TLSConfig{Certificate: shown, MinVersion: version, Curves: []tls.CurveID{tls.CurveP384}}})
	_, err = dial(second, tls.VersionTLS12)
	assert.Error(t, err)
	got, err = dial(second, tls.VersionTLS13)
	require.NoError(t, err)
	assert.Equal(t, tls.CurveP384, got.CurveID)

	_, err = server.TLSVersion("1.3")
	assert.ErrorContains(t, err, `unknown TLS version "1.3": want VersionTLS12`)
	_, err = server.CipherSuites([]string{"TLS_NONE"})
	assert.ErrorContains(t, err, `unknown TLS cipher suite "TLS_NONE"`)
}

// sv-2: changed files are read again; an invalid file leaves the previous content in
// use.
func TestCertificatesAndCAsAreReadAgain(t *testing.T) {
	first, second := newIssuer(t, "first"), newIssuer(t, "second")
	dir := t.TempDir()
	put := func(ca *issuer, withKey bool) []byte {
		cert, key := ca.sign("n1", x509.ExtKeyUsageServerAuth)
		files := map[string][]byte{"tls.crt": cert, "ca.crt": ca.pem}
		if withKey {
			files["tls.key"] = key
		}
		write(t, dir, files)
		block, _ := pem.Decode(cert)
		return block.Bytes
	}
	was := put(first, true)
	synctest.Test(t, func(t *testing.T) {
		pair, err := server.NewKeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), nil)
		require.NoError(t, err)
		ca, err := server.NewCAFile(filepath.Join(dir, "ca.crt"), nil)
		require.NoError(t, err)
		shows := func() []byte {
			c, err := pair.Certificate(nil)
			require.NoError(t, err)
			return c.Certificate[0]
		}
		trusts := func(is *issuer) bool {
			pool := x509.NewCertPool()
			pool.AddCert(is.cert)
			return ca.Roots().Equal(pool)
		}
		assert.Equal(t, was, shows())
		assert.True(t, trusts(first))

		put(second, false) // the key comes later
		time.Sleep(6 * time.Second)
		assert.Equal(t, was, shows(), "the key does not fit")
		assert.True(t, trusts(second))
		is := put(second, true)
		assert.Equal(t, was, shows(), "not checked for 5 s")
		time.Sleep(6 * time.Second)
		assert.Equal(t, is, shows())

		require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("broken"), 0o600))
		require.NoError(t, os.Remove(filepath.Join(dir, "tls.key")))
		time.Sleep(6 * time.Second)
		assert.Equal(t, is, shows())
		assert.True(t, trusts(second))
	})
	_, err := server.NewCAFile(filepath.Join(dir, "ca.crt"), nil)
	assert.ErrorContains(t, err, "no certificate found")
	_, err = server.NewKeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), nil)
	assert.ErrorContains(t, err, "tls.key")
}

// Many nodes are served in one process, each on separate ports, with separate
// certificates and users; one stops, and the others continue.
func TestServersOfManyNodesRunConcurrently(t *testing.T) {
	type node struct {
		ca            *issuer
		full, healthz string
	}
	var nodes []node
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5"} {
		ca := newIssuer(t, name)
		roots := x509.NewCertPool()
		roots.AddCert(ca.cert)
		pair, err := tls.X509KeyPair(ca.sign(name, x509.ExtKeyUsageServerAuth))
		require.NoError(t, err)
		pod := web.DeepCopy()
		pod.Name = "of-" + name
		s := newServer(t, func(c *server.Config) {
			c.NodeName, c.Pods = name, pods{pod}
			c.Authenticator = auth.Chain{auth.Certificates{Roots: func() *x509.CertPool { return roots }}}
		})
		nodes = append(nodes, node{
			ca, listen(t, server.ListenerConfig{Handler: s, TLS: server.TLSConfig{ClientCAs: func() *x509.CertPool { return roots }, Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }}}),
			listen(t, server.ListenerConfig{Handler: s.Healthz()}),
		})
	}
	get := func(c *http.Client, url string) (int, string) {
		answer, err := c.Get(url)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
	for i, n := range nodes {
		code, body := get(n.ca.client(n.ca, "user"), "https://"+n.full+"/pods")
		assert.Equal(t, 200, code)
		assert.Contains(t, body, fmt.Sprintf("of-n%d", i+1))
		code, _ = get(insisting(n.ca.client(nodes[(i+1)%len(nodes)].ca, "user")), "https://"+n.full+"/pods")
		assert.Equal(t, 401, code, "a user of another node")
		code, body = get(http.DefaultClient, "http://"+n.healthz+"/healthz")
		assert.Equal(t, "200 ok", fmt.Sprint(code, " ", body))
	}
}
