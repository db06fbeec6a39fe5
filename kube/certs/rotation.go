package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/connrotation"
)

var getOptions = metav1.GetOptions{}

// lookPeriod is how often a new certificate is looked for, to be shown on new
// connections in the place of those that show the old one.
const lookPeriod = 5 * time.Second

// A Rotation renews a node's certificate while it holds, when between 70 and 90
// percent of its time are over.
type Rotation struct {
	cfg     Config
	manager certificate.Manager
	dialer  *connrotation.Dialer
	config  *rest.Config
}

// NewRotation returns a Rotation for clients of base, a configuration with the
// certificate that Bootstrap got. It reads the certificate and starts nothing.
func NewRotation(base *rest.Config, cfg Config) (*Rotation, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if base == nil {
		return nil, errors.New("certs: the REST configuration is nil")
	}
	store, err := cfg.store()
	if err != nil {
		return nil, err
	}
	r := &Rotation{cfg: cfg}
	subject := cfg.subject()
	var lifetime *time.Duration
	if cfg.Lifetime > 0 {
		lifetime = &cfg.Lifetime
	}
	r.manager, err = certificate.NewManager(&certificate.Config{
		ClientsetFn:      r.clientFor,
		Template:         &x509.CertificateRequest{Subject: subject},
		CertificateStore: store, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
		RequestedCertificateLifetime: lifetime, GetUsages: usages,
	})
	if err != nil {
		return nil, fmt.Errorf("certs: rotation: %w", err)
	}
	r.dialer = connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
	r.config, err = r.clientConfig(base)
	return r, err
}

// Config is for clients that show the certificate of the moment. It must not be
// changed in its transport or TLS settings.
func (r *Rotation) Config() *rest.Config { return rest.CopyConfig(r.config) }

// CloseConnections closes all connections of these clients: they may hang, or
// show what is not valid any more.
func (r *Rotation) CloseConnections() { r.dialer.CloseAll() }

// Run renews the certificate until ctx ends.
func (r *Rotation) Run(ctx context.Context) error {
	r.manager.Start()
	defer r.manager.Stop()
	ticker := time.NewTicker(lookPeriod)
	defer ticker.Stop()
	last := r.manager.Current()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if now := r.manager.Current(); now != last && now != nil {
			last = now
			r.cfg.Logger.Info("certificate rotated; connections are opened anew", "until", now.Leaf.NotAfter)
			r.dialer.CloseAll()
		}
	}
}

// clientFor returns who asks for the next certificate: the node as it is, or,
// when it is nobody (any more), whoever may ask for a first one.
func (r *Rotation) clientFor(is *tls.Certificate) (kubernetes.Interface, error) {
	if expired(is, time.Now()) && r.cfg.Bootstrap != nil {
		return r.cfg.Client(r.cfg.Bootstrap)
	}
	return r.cfg.Client(r.config)
}

func expired(c *tls.Certificate, now time.Time) bool {
	return c == nil || c.Leaf == nil || now.After(c.Leaf.NotAfter)
}

// clientConfig returns base with a transport that asks for the certificate each
// time that it opens a connection.
func (r *Rotation) clientConfig(base *rest.Config) (*rest.Config, error) {
	anonymous := rest.CopyConfig(base)
	anonymous.CertFile, anonymous.KeyFile, anonymous.CertData, anonymous.KeyData = "", "", nil, nil
	config, err := rest.TLSConfigFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("certs: TLS of the REST configuration: %w", err)
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if c := r.manager.Current(); c != nil {
			return c, nil
		}
		return &tls.Certificate{}, nil // nobody
	}
	out := rest.CopyConfig(base)
	out.TLSClientConfig, out.Dial = rest.TLSClientConfig{}, nil
	out.Transport = utilnet.SetTransportDefaults(&http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig: config, MaxIdleConnsPerHost: 25, DialContext: r.dialer.DialContext,
	})
	if base.Proxy != nil {
		out.Transport.(*http.Transport).Proxy, out.Proxy = base.Proxy, nil
	}
	return out, nil
}
