package edge

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/certs"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/server"
)

// A serving is the serving certificate of the API.
type serving struct {
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Expires     func() time.Time // nil: it is not renewed
	Run         []stores.Component
}

// dnsOnlyCSRGate permits a serving certificate for names without an address.
const dnsOnlyCSRGate = "AllowDNSOnlyNodeCSR"

// newServing returns the serving certificate (rule sv-2): the configured one, one that the
// cluster signs, or a self-signed one.
func newServing(b stores.Base, c *stores.Cluster, hostIPs []string) (s serving, err error) {
	k, dir := b.Configuration, b.Config.Cluster.CertDir
	certFile, keyFile := k.TLSCertFile, k.TLSPrivateKeyFile
	switch {
	case (certFile == "") != (keyFile == ""):
		return s, errors.New("only one of tlsCertFile and tlsPrivateKeyFile is set")
	case certFile != "":
	case k.ServerTLSBootstrap && c == nil:
		return s, fmt.Errorf("serverTLSBootstrap: %w", stores.ErrNoCluster)
	case k.ServerTLSBootstrap:
		_, algorithm := config.KeyAlgorithms(k)
		signed, err := certs.NewServing(certs.ServingConfig{
			NodeName: b.Config.NodeName, Dir: dir, Client: c.Conn.API, Addresses: c.Object.Names, KeyAlgorithm: certs.KeyAlgorithm(algorithm),
			AllowDNSOnly: b.Configuration.FeatureGates[dnsOnlyCSRGate], Renewed: b.Metrics.API.ServerRenewed, Logger: b.Logger,
		})
		if err != nil {
			return s, err
		}
		return serving{signed.Certificate, signed.Expires, []stores.Component{signed.Run}}, nil
	default:
		var ips []net.IP
		for _, ip := range hostIPs {
			ips = append(ips, net.ParseIP(ip))
		}
		if certFile, keyFile, err = certs.SelfSigned(dir, []string{b.Config.NodeName}, ips); err != nil {
			return s, err
		}
	}
	pair, err := server.NewKeyPair(certFile, keyFile, b.Logger)
	if err != nil {
		return s, fmt.Errorf("tlsCertFile: %w", err)
	}
	s.Certificate = pair.Certificate
	return s, nil
}

// setTLS sets the TLS fields of the Configuration. Insecure versions and suites cause a
// warning, as with the kubelet.
func setTLS(k *kubeletconfig.KubeletConfiguration, into *server.TLSConfig) (warnings []string, err error) {
	if into.MinVersion, err = server.TLSVersion(k.TLSMinVersion); err != nil {
		return nil, fmt.Errorf("tlsMinVersion: %w", err)
	}
	if v := into.MinVersion; v != 0 && v < tls.VersionTLS12 {
		warnings = append(warnings, fmt.Sprintf("tlsMinVersion: %s is insecure; want VersionTLS12 or VersionTLS13", k.TLSMinVersion))
	}
	if into.CipherSuites, err = server.CipherSuites(k.TLSCipherSuites); err != nil {
		return nil, fmt.Errorf("tlsCipherSuites: %w", err)
	}
	for _, s := range tls.InsecureCipherSuites() {
		if slices.Contains(into.CipherSuites, s.ID) {
			warnings = append(warnings, fmt.Sprintf("tlsCipherSuites: %s is insecure", s.Name))
		}
	}
	for _, id := range k.TLSCurvePreferences {
		if strings.HasPrefix(tls.CurveID(id).String(), "CurveID(") {
			return nil, fmt.Errorf("tlsCurvePreferences: unknown key exchange %d", id)
		}
		into.Curves = append(into.Curves, tls.CurveID(id))
	}
	return warnings, nil
}
