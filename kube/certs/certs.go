package certs

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
)

const (
	// File names are the kubelet's, so that a node can switch between both: each file has a
	// key and a certificate, and a link refers to the current one.
	clientPrefix = "kubelet-client"
	currentLink  = clientPrefix + "-current.pem"

	userPrefix = "system:node:"
	nodesGroup = "system:nodes"
)

// A Config configures the client certificate of a node.
type Config struct {
	// NodeName is the node of the certificate, whose user is system:node:<NodeName>.
	// Required.
	NodeName string

	// Dir is the directory of the certificates; it is created if it does not exist.
	// Required.
	Dir string

	// Kubeconfig is the file that Bootstrap creates; it refers to the current certificate
	// in Dir. Required by Bootstrap.
	Kubeconfig string

	// Bootstrap returns a connection to the API server with a user that may request a first
	// certificate. It is called only while Kubeconfig has no valid certificate, before each
	// request, since a token may be replaced and the file that it is read from deleted after
	// the first use, as kubeadm does. Required by Bootstrap if there is no valid
	// certificate; without it, a Rotation cannot replace an expired certificate.
	Bootstrap func() (*rest.Config, error)

	// Rotate enables the renewal of every client certificate of Kubeconfig: an embedded one,
	// which is stored as the current one of Dir and replaced at once, and that of another
	// file. If it is false, only certificates in Dir are renewed.
	Rotate bool

	// KeyAlgorithm is the algorithm of the keys of requests. A certificate in use is not
	// replaced because of it. Empty: ECDSAP256.
	KeyAlgorithm KeyAlgorithm

	// Lifetime is the requested lifetime; the signer may issue a shorter one. Zero: the
	// default of the signer.
	Lifetime time.Duration

	// ApprovalTimeout is the time for which a request is pending before another one is
	// created. Zero: 15m, since an operator may have to approve it.
	ApprovalTimeout time.Duration

	// Client returns a client for requests. Nil: kubernetes.NewForConfig.
	Client func(*rest.Config) (kubernetes.Interface, error)

	// Renewed is called after each attempt of a Rotation to renew the certificate. It must
	// not block. May be nil.
	Renewed func(err error)

	// Logger may be nil: nothing is logged.
	Logger *slog.Logger
}

func (c *Config) check() error {
	if c.NodeName == "" {
		return errors.New("certs: Config.NodeName is empty")
	}
	if c.Dir == "" {
		return errors.New("certs: Config.Dir is empty")
	}
	if _, err := c.KeyAlgorithm.generator(); err != nil {
		return fmt.Errorf("certs: Config.KeyAlgorithm: %w", err)
	}
	if c.ApprovalTimeout == 0 {
		c.ApprovalTimeout = 15 * time.Minute
	}
	if c.Client == nil {
		c.Client = func(cfg *rest.Config) (kubernetes.Interface, error) { return kubernetes.NewForConfig(cfg) }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("certs: create Config.Dir: %w", err)
	}
	return nil
}

// Current returns the path of the current certificate and key.
func (c Config) Current() string { return filepath.Join(c.Dir, currentLink) }

// Valid returns why the certificate in a file, which also contains the key, is not valid
// for a node at a time; nil if it is. An empty nodeName accepts the certificate of any
// user.
func Valid(file, nodeName string, now time.Time) error {
	pair, err := tls.LoadX509KeyPair(file, file)
	if err == nil {
		err = usable(pair, nodeName, now)
	}
	switch {
	case err != nil:
		return fmt.Errorf("certs: %s: %w", file, err)
	case now.Before(pair.Leaf.NotBefore):
		return fmt.Errorf("certs: %s: not valid before %v", file, pair.Leaf.NotBefore)
	}
	return nil
}

// usable returns why a certificate cannot authenticate a node; nil if it can. An empty
// nodeName accepts the certificate of any user. A certificate that is not valid yet is
// usable, since the clock of a machine that starts may be behind.
func usable(pair tls.Certificate, nodeName string, now time.Time) error {
	for _, der := range pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		if now.After(cert.NotAfter) {
			return fmt.Errorf("client certificate of %s expired at %v", cert.Subject.CommonName, cert.NotAfter)
		}
	}
	if name := pair.Leaf.Subject.CommonName; nodeName != "" && name != userPrefix+nodeName {
		return fmt.Errorf("client certificate of %s, not of node %s", name, nodeName)
	}
	return nil
}

// loadOrGenerateKey returns the key in a file, which it creates if there is no valid one of the algorithm:
// after a restart the pending request is continued with the same key.
func loadOrGenerateKey(file string, algorithm KeyAlgorithm) (key crypto.Signer, pem []byte, err error) {
	if pem, err = os.ReadFile(file); err == nil {
		if parsed, err := keyutil.ParsePrivateKeyPEM(pem); err == nil {
			if key, ok := parsed.(crypto.Signer); ok && algorithm.accepts(key) {
				return key, pem, nil
			}
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		if err = os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, fmt.Errorf("certs: key: %w", err)
		}
	}
	generate, err := algorithm.generator()
	if err == nil {
		key, err = generate()
	}
	if err == nil {
		pem, err = keyutil.MarshalPrivateKeyToPEM(key)
	}
	if err == nil {
		err = keyutil.WriteKey(file, pem)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("certs: key: %w", err)
	}
	return key, pem, nil
}
