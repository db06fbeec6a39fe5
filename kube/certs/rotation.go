package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/kubeparts/kubeparts/kube/internal/pause"
)

// A certificate is renewed at a random time between these fractions of its lifetime.
const (
	renewFrom = 0.7
	renewTo   = 0.9
)

// minRenewInterval is the minimum time between renewals, however short the lifetime of the
// certificate is by the clock of this node.
const minRenewInterval = time.Minute

// A Rotation renews the client certificate of a node before it expires. (The certificate
// manager of client-go cannot be stopped: it sleeps until the next renewal.)
type Rotation struct {
	cfg     Config
	ran     atomic.Bool // Run was called
	current atomic.Pointer[tls.Certificate]
	dialer  *connrotation.Dialer
	config  *rest.Config
}

// NewRotation returns a Rotation for clients with the configuration base, whose certificate
// Bootstrap has requested. It reads the certificate and starts nothing.
func NewRotation(base *rest.Config, cfg Config) (*Rotation, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if base == nil {
		return nil, errors.New("certs: REST configuration is nil")
	}
	store, err := cfg.clientRequest().store(cfg.Dir)
	if err != nil {
		return nil, err
	}
	is, err := store.Current()
	if err != nil {
		return nil, fmt.Errorf("certs: read certificate in %s: %w", cfg.Dir, err)
	}
	r := &Rotation{cfg: cfg}
	r.current.Store(is)
	r.dialer = connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
	r.config, err = r.clientConfig(base)
	return r, err
}

// Config returns a configuration of clients that use the current certificate. Its transport
// and TLS settings must not be changed.
func (r *Rotation) Config() *rest.Config { return rest.CopyConfig(r.config) }

// CloseConnections closes all connections of these clients, since they may hang or use an
// old certificate.
func (r *Rotation) CloseConnections() { r.dialer.CloseAll() }

// Expires returns the expiration time of the current certificate.
func (r *Rotation) Expires() time.Time { return r.current.Load().Leaf.NotAfter }

// Run renews the certificate before it expires, until ctx is done; it then returns nil.
// Failures are retried with backoff; a denied request is also retried, since a later one
// may be approved. It returns an error if it was called before.
func (r *Rotation) Run(ctx context.Context) error {
	if r.ran.Swap(true) {
		return errors.New("certs: Rotation.Run was called before")
	}
	for minWait := time.Duration(0); ; minWait = minRenewInterval {
		if pause.For(ctx, max(minWait, time.Until(renewAt(r.current.Load(), rand.Float64())))) != nil {
			return nil
		}
		for wait := initialBackoff; ; wait = min(2*wait, maxBackoff) {
			err := r.renew(ctx)
			if ctx.Err() == nil && r.cfg.Renewed != nil {
				r.cfg.Renewed(err)
			}
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return nil
			}
			r.cfg.Logger.Warn("Failed to renew client certificate; will retry", "expires", r.Expires(), "err", err)
			if pause.For(ctx, wait) != nil {
				return nil
			}
		}
		r.cfg.Logger.Info("Renewed client certificate; connections are closed", "expires", r.Expires())
		r.dialer.CloseAll() // they use the old certificate
	}
}

// renewAt returns the renewal time of a certificate. random is between 0 and 1.
func renewAt(c *tls.Certificate, random float64) time.Time {
	life := c.Leaf.NotAfter.Sub(c.Leaf.NotBefore)
	return c.Leaf.NotBefore.Add(time.Duration((renewFrom + (renewTo-renewFrom)*random) * float64(life)))
}

func (r *Rotation) renew(ctx context.Context) error {
	client, err := r.client()
	if err != nil {
		return fmt.Errorf("certs: client: %w", err)
	}
	next, err := request(ctx, r.cfg, r.cfg.clientRequest(), client)
	if err != nil {
		return err
	}
	r.current.Store(next)
	return nil
}

// client returns the client for the next request: that of the node, or, if its certificate
// has expired, that of Bootstrap.
func (r *Rotation) client() (kubernetes.Interface, error) {
	if time.Now().After(r.Expires()) && r.cfg.Bootstrap != nil {
		return r.cfg.Client(r.cfg.Bootstrap)
	}
	return r.cfg.Client(r.config)
}

// clientConfig returns base with a transport that reads the current certificate for each
// connection.
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
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return r.current.Load(), nil }
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig: config, MaxIdleConnsPerHost: 25, DialContext: r.dialer.DialContext,
	}
	if base.Proxy != nil {
		transport.Proxy = base.Proxy
	}
	out := rest.CopyConfig(base)
	out.TLSClientConfig, out.Dial, out.Proxy = rest.TLSClientConfig{}, nil, nil
	out.Transport = utilnet.SetTransportDefaults(transport)
	return out, nil
}
