package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// checkKubeconfig returns why the kubeconfig file cannot be used; nil if it can.
func checkKubeconfig(cfg Config) error {
	c, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
	if err != nil {
		return fmt.Errorf("certs: kubeconfig: %w", err)
	}
	if !hasCertificate(c) && hasOtherCredentials(c) {
		if _, err := rest.TransportFor(c); err != nil {
			return fmt.Errorf("certs: kubeconfig %s: %w", cfg.Kubeconfig, err)
		}
		return nil
	}
	if _, err := rest.TLSConfigFor(c); err != nil {
		return fmt.Errorf("certs: kubeconfig %s: %w", cfg.Kubeconfig, err)
	}
	// A certificate that Bootstrap has not requested may have any user name.
	name := ""
	if c.CertFile == cfg.Current() {
		name = cfg.NodeName
	}
	err = ValidConfig(c, name, time.Now())
	if err != nil && cfg.Rotate && hasCertificate(c) && Valid(cfg.Current(), cfg.NodeName, time.Now()) == nil {
		return nil // it has been replaced by the current one of Dir
	}
	if err != nil {
		return fmt.Errorf("certs: kubeconfig %s: %w", cfg.Kubeconfig, err)
	}
	return nil
}

// ValidConfig returns why the client certificate of a REST configuration, in files or
// embedded, cannot authenticate a node at a time; nil if it can. It is an error if there is
// none. An empty nodeName accepts the certificate of any user. A certificate that is not
// valid yet is accepted, since the clock of a machine that starts may be behind.
func ValidConfig(c *rest.Config, nodeName string, now time.Time) error {
	pair, err := configured(c)
	if err != nil {
		return err
	}
	return usable(pair, nodeName, now)
}

// configured returns the client certificate of a REST configuration. Embedded data precede
// files, as with client-go.
func configured(c *rest.Config) (tls.Certificate, error) {
	if !hasCertificate(c) {
		return tls.Certificate{}, errors.New("no client certificate")
	}
	if !embedded(c) {
		return tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	}
	key := c.KeyData
	if len(key) == 0 {
		var err error
		if key, err = os.ReadFile(c.KeyFile); err != nil {
			return tls.Certificate{}, err
		}
	}
	return tls.X509KeyPair(c.CertData, key)
}

func hasCertificate(c *rest.Config) bool { return embedded(c) || c.CertFile != "" }

func embedded(c *rest.Config) bool { return len(c.CertData) > 0 }

func hasOtherCredentials(c *rest.Config) bool {
	return c.BearerToken != "" || c.BearerTokenFile != "" || c.Username != "" || c.ExecProvider != nil || c.AuthProvider != nil
}
