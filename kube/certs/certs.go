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
	// prefix of the files, as the kubelet has them, so that a node can be taken
	// over: the key and the certificate in one file, and a link to the one that
	// counts.
	prefix  = "kubelet-client"
	current = prefix + "-current.pem"

	userPrefix = "system:node:"
	nodesGroup = "system:nodes"
)

// Config is about the client certificate of one node.
type Config struct {
	// NodeName is whom the certificate is for: system:node:<NodeName>. Required.
	NodeName string

	// Dir holds the certificates; it is made if it is not there. Required.
	Dir string

	// Kubeconfig is the file that Bootstrap makes, which refers to the current
	// certificate in Dir. Required by Bootstrap.
	Kubeconfig string

	// Bootstrap is how to reach the API server as one who may ask for a first
	// certificate. Required by Bootstrap; without it, Rotation cannot get a new
	// certificate when the old one has expired.
	Bootstrap *rest.Config

	// Lifetime to ask for; the signer may give less. Zero: what it likes.
	Lifetime time.Duration

	// Patience is how long Bootstrap waits for an answer to one request, before
	// it asks anew. Zero: 15 min; somebody may have to approve it by hand.
	Patience time.Duration

	// Client makes the clients that requests go through. Nil:
	// kubernetes.NewForConfig.
	Client func(*rest.Config) (kubernetes.Interface, error)

	// Renewed is told of each try of Rotation to get a new certificate, for metrics.
	// It must not block. Nil: nobody is told.
	Renewed func(err error)

	// Logger; nil discards.
	Logger *slog.Logger
}

func (c *Config) check() error {
	if c.NodeName == "" {
		return errors.New("certs: Config.NodeName is empty")
	}
	if c.Dir == "" {
		return errors.New("certs: Config.Dir is empty")
	}
	if c.Patience == 0 {
		c.Patience = 15 * time.Minute
	}
	if c.Client == nil {
		c.Client = func(cfg *rest.Config) (kubernetes.Interface, error) { return kubernetes.NewForConfig(cfg) }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("certs: make Config.Dir: %w", err)
	}
	return nil
}

// Current is the path of the certificate and key that count now.
func (c Config) Current() string { return filepath.Join(c.Dir, current) }

// Valid says what is wrong with the certificate in a file that has the key as
// well, nil if it can be used now by the node.
func Valid(file, nodeName string, now time.Time) error {
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		return fmt.Errorf("certs: %s: %w", file, err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	switch {
	case err != nil:
		return fmt.Errorf("certs: %s: %w", file, err)
	case now.After(cert.NotAfter):
		return fmt.Errorf("certs: %s: expired at %v", file, cert.NotAfter)
	case now.Before(cert.NotBefore):
		return fmt.Errorf("certs: %s: not valid before %v", file, cert.NotBefore)
	case nodeName != "" && cert.Subject.CommonName != userPrefix+nodeName:
		return fmt.Errorf("certs: %s: it is that of %s, not of node %s", file, cert.Subject.CommonName, nodeName)
	}
	return nil
}

// loadOrMakeKey returns the key in a file, which it makes if there is none that
// can be used: an agent that is started anew goes on with what it asked for.
func loadOrMakeKey(file string) (key crypto.Signer, pem []byte, err error) {
	pem, _, err = keyutil.LoadOrGenerateKeyFile(file)
	if err != nil {
		if err = os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, fmt.Errorf("certs: key: %w", err)
		}
		if pem, _, err = keyutil.LoadOrGenerateKeyFile(file); err != nil {
			return nil, nil, fmt.Errorf("certs: key: %w", err)
		}
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(pem)
	if err != nil {
		return nil, nil, fmt.Errorf("certs: key %s: %w", file, err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("certs: key %s: it is a %T, which can't sign", file, parsed)
	}
	return key, pem, nil
}
