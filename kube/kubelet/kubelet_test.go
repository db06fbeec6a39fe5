package kubelet

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/server"
)

// kubeletOptions are those of a file with these lines.
func kubeletOptions(t *testing.T, lines string) kubeletconfig.KubeletConfiguration {
	t.Helper()
	o, err := parseFlags([]string{"--manifests=x", "--config=" + configFile(t, lines)})
	require.NoError(t, err)
	return o.kubelet
}

func TestAnAgentThatStandsAloneOpensThePortsThatItIsToldTo(t *testing.T) {
	p, err := openPorts(kubeletOptions(t, ""), false)
	require.NoError(t, err)
	assert.Equal(t, kubeletPorts{}, p)
	assert.Zero(t, p.number())

	p, err = openPorts(kubeletOptions(t, "port: -1\nreadOnlyPort: -1\nhealthzPort: -1\naddress: 127.0.0.1\n"), false)
	require.NoError(t, err)
	defer p.close()
	for _, l := range []net.Listener{p.full, p.readOnly, p.healthz} {
		require.NotNil(t, l)
		assert.Equal(t, "127.0.0.1", l.Addr().(*net.TCPAddr).IP.String())
	}
	assert.EqualValues(t, p.full.Addr().(*net.TCPAddr).Port, p.number())

	taken := strconv.Itoa(int(p.number()))
	_, err = openPorts(kubeletOptions(t, "healthzPort: -1\nport: "+taken+"\naddress: 127.0.0.1\n"), false)
	assert.ErrorContains(t, err, "port: cannot serve the kubelet's API; choose another")

	for _, typo := range []string{"-10250", "102500"} {
		_, err = openPorts(kubeletOptions(t, "healthzPort: -1\nport: "+typo+"\naddress: 127.0.0.1\n"), false)
		assert.ErrorContains(t, err, "port: "+typo+" is no port: want 1 to 65535")
	}

	off, err := openPorts(kubeletOptions(t, "enableServer: false\nport: -1\nreadOnlyPort: -1\nhealthzPort: 0\n"), true)
	require.NoError(t, err)
	assert.Equal(t, kubeletPorts{}, off)
}

// What asks an API server is an error without one: the agent must not be open to
// everybody because it has nobody to ask.
func TestWithoutAClusterSomebodyHasToSayWhoMayAsk(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(ca, []byte("no certificate"), 0o600))
	for lines, says := range map[string]string{
		"":                                 "authorization.mode: Webhook asks an API server",
		"authorization: {mode: Webhook}\n": "authorization.mode: Webhook asks an API server",
		"authorization: {mode: RBAC}\n":    `authorization.mode: "RBAC" is neither`,
		"authentication: {webhook: {enabled: true}}\n":                                           "authentication.webhook.enabled: tokens are reviewed by an API server",
		"authentication: {x509: {clientCAFile: /none/such}}\n":                                   "authentication.x509.clientCAFile: ",
		"authentication: {x509: {clientCAFile: " + ca + "}}\nauthorization: {mode: AlwaysAllow}": "there is no certificate in it",
	} {
		var cfg server.Config
		_, err := access{config: kubeletOptions(t, lines), logger: slog.New(slog.DiscardHandler)}.into(&cfg, true)
		assert.ErrorContains(t, err, says, lines)
	}
	var cfg server.Config
	_, err := access{config: kubeletOptions(t, "authorization: {mode: AlwaysAllow}\n")}.into(&cfg, true)
	require.NoError(t, err)
	assert.Empty(t, cfg.Authenticator, "nobody is known: all get 401")
	clientCAs, err := access{config: kubeletOptions(t, "authentication: {anonymous: {enabled: true}}\nauthorization: {mode: AlwaysAllow}\n")}.into(&cfg, true)
	require.NoError(t, err)
	assert.Equal(t, auth.Chain{auth.Anonymous{}}, cfg.Authenticator)
	assert.Nil(t, clientCAs, "no client certificate is requested")
	_, err = access{config: kubeletOptions(t, "")}.into(&cfg, false)
	require.NoError(t, err, "ports that ask nobody need nobody")
}

func TestTLSOfTheConfiguration(t *testing.T) {
	for lines, says := range map[string]string{
		"tlsMinVersion: TLS13\n":        `tlsMinVersion: server: there is no TLS version "TLS13"`,
		"tlsCipherSuites: [NONE]\n":     `tlsCipherSuites: server: there is no TLS cipher suite "NONE"`,
		"tlsCurvePreferences: [9999]\n": "tlsCurvePreferences: there is no key exchange with the number 9999",
	} {
		_, err := readTLS(kubeletOptions(t, lines), new(server.ListenerConfig))
		assert.ErrorContains(t, err, says)
	}
	var cfg server.ListenerConfig
	warnings, err := readTLS(kubeletOptions(t, "tlsMinVersion: VersionTLS13\ntlsCurvePreferences: [29]\n"), &cfg)
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.EqualValues(t, tls.VersionTLS13, cfg.MinVersion)
	assert.Equal(t, []tls.CurveID{tls.X25519}, cfg.Curves)
	_, err = readTLS(kubeletOptions(t, ""), &cfg)
	require.NoError(t, err)
	assert.EqualValues(t, tls.VersionTLS12, cfg.MinVersion)

	// A kubelet accepts these and logs a warning for insecure suites.
	warnings, err = readTLS(kubeletOptions(t, "tlsMinVersion: VersionTLS11\ntlsCipherSuites: [TLS_RSA_WITH_RC4_128_SHA, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n"), new(server.ListenerConfig))
	require.NoError(t, err)
	assert.Equal(t, []string{"tlsMinVersion: VersionTLS11 is insecure; want VersionTLS12 or VersionTLS13", "tlsCipherSuites: TLS_RSA_WITH_RC4_128_SHA is insecure"}, warnings)

	for lines, says := range map[string]string{
		"serverTLSBootstrap: true\n":                         "serverTLSBootstrap: certificates are given by a cluster",
		"tlsCertFile: /a\n":                                  "tlsCertFile and tlsPrivateKeyFile go together",
		"tlsCertFile: /none/a\ntlsPrivateKeyFile: /none/b\n": "tlsCertFile: server: open /none/a",
	} {
		a := &assembly{opts: options{kubelet: kubeletOptions(t, lines), root: t.TempDir(), nodeName: "n"}}
		_, _, err := a.servingCertificate()
		assert.ErrorContains(t, err, says)
	}
	a := &assembly{opts: options{kubelet: kubeletOptions(t, ""), root: t.TempDir(), nodeName: "n"}, hostIPs: func() []string { return []string{"10.0.0.1"} }}
	shown, more, err := a.servingCertificate()
	require.NoError(t, err)
	assert.Empty(t, more)
	cert, err := shown(nil)
	require.NoError(t, err)
	assert.Equal(t, "n", cert.Leaf.Subject.CommonName)
	assert.FileExists(t, filepath.Join(a.opts.root, "pki", "kubelet.crt"))
}

// Headers of manifests' URLs may be credentials, which /configz must not show.
func TestTheConfigurationIsShownWithoutCredentials(t *testing.T) {
	k := kubeletOptions(t, "staticPodURLHeader: {Authorization: [Bearer secret]}\n")
	assert.Equal(t, map[string][]string{"Authorization": {"<masked>"}}, shownConfig(k).StaticPodURLHeader)
	assert.Equal(t, []string{"Bearer secret"}, k.StaticPodURLHeader["Authorization"])
}

func TestTheLevelOfTheLogIsKlogs(t *testing.T) {
	a := &assembly{level: new(slog.LevelVar)}
	for level, want := range map[int]slog.Level{0: slog.LevelWarn, 2: slog.LevelInfo, 4: slog.LevelDebug, 10: slog.LevelDebug} {
		a.setVerbosity(level)
		assert.Equal(t, want, a.level.Level())
	}
}
