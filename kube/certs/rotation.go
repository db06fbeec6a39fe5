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

// clockPeriod is the period at which the time of a renewal is compared with the clock, which
// may be set, or stop while the machine is suspended.
const clockPeriod = time.Hour

// minRenewInterval is the minimum time between renewals, however short the lifetime of the
// certificate is by the clock of this node.
const minRenewInterval = time.Minute

// A Rotation renews the client certificate of a node before it expires. (The certificate
// manager of client-go cannot be stopped: it sleeps until the next renewal.)
type Rotation struct {
	cfg     Config
	ran     atomic.Bool // Run was called
	current atomic.Pointer[tls.Certificate]
	issued  chan struct{} // closed when there is a first certificate
	dialer  *connrotation.Dialer
	config  *rest.Config
	replace bool // the first certificate is replaced at once
}

// Rotates reports whether a Rotation can renew the client certificate of the configuration
// base, the configuration in cfg.Kubeconfig.
func (c Config) Rotates(base *rest.Config) bool {
	return base.CertFile == c.Current() || c.Rotate && hasCertificate(base)
}

// NewRotation returns a Rotation for clients with the configuration base, whose certificate
// Bootstrap has requested or which Config.Rotate includes. Its first certificate is, as with
// the kubelet, the current one of cfg.Dir if it is valid for the node, or else that of base;
// an embedded one is stored in cfg.Dir, and replaced as soon as Run is called. It returns an
// error if an embedded certificate has expired, since nothing can replace it. It starts
// nothing.
func NewRotation(base *rest.Config, cfg Config) (*Rotation, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if base == nil {
		return nil, errors.New("certs: REST configuration is nil")
	}
	r := newRotation(cfg)
	if err := r.start(base); err != nil {
		return nil, err
	}
	var err error
	r.config, err = r.clientConfig(base)
	return r, err
}

func newRotation(cfg Config) *Rotation {
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
	return &Rotation{cfg: cfg, issued: make(chan struct{}), dialer: dialer}
}

// start chooses the first certificate. It is called once.
func (r *Rotation) start(base *rest.Config) error {
	store, err := r.cfg.clientRequest().store(r.cfg.Dir, r.cfg.Logger)
	if err != nil {
		return err
	}
	stored, err := store.Current()
	chosen, err := firstCertificate(stored, err, base, r.cfg.NodeName, time.Now())
	if err != nil {
		return fmt.Errorf("certs: %s, %s: %w", r.cfg.Dir, r.cfg.Kubeconfig, err)
	}
	if chosen.copy {
		if _, err := store.Update(base.CertData, base.KeyData); err != nil {
			r.cfg.Logger.Warn("Failed to store the client certificate of the kubeconfig; it is used without a copy", "dir", r.cfg.Dir, "err", err)
		}
	}
	r.replace = chosen.replace
	r.current.Store(chosen.cert)
	close(r.issued)
	return nil
}

// Config returns a configuration of clients that use the current certificate. Its transport
// and TLS settings must not be changed.
func (r *Rotation) Config() *rest.Config { return rest.CopyConfig(r.config) }

// CloseConnections closes all connections of these clients, since they may hang or use an
// old certificate.
func (r *Rotation) CloseConnections() { r.dialer.CloseAll() }

// Expires returns the expiration time of the current certificate; the zero time if none has
// been issued.
func (r *Rotation) Expires() time.Time {
	c := r.current.Load()
	if c == nil {
		return time.Time{}
	}
	return c.Leaf.NotAfter
}

// Run renews the certificate before it expires, until ctx is done; it then returns nil.
// Failures are retried with backoff; a denied request is also retried, since a later one
// may be approved. It returns an error if it was called before, and with NewPending if the
// first request is denied.
func (r *Rotation) Run(ctx context.Context) error {
	if r.ran.Swap(true) {
		return errors.New("certs: Rotation.Run was called before")
	}
	if r.current.Load() == nil {
		if err := r.first(ctx); err != nil && ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
	due := renewAt(r.current.Load(), rand.Float64())
	if r.replace {
		due = time.Now()
	}
	for {
		if pauseUntil(ctx, due) != nil {
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
		due = later(renewAt(r.current.Load(), rand.Float64()), time.Now().Add(minRenewInterval))
	}
}

// pauseUntil blocks until the clock reaches t, or returns the error of ctx.
func pauseUntil(ctx context.Context, t time.Time) error {
	for time.Now().Before(t) {
		if err := pause.For(ctx, min(clockPeriod, time.Until(t))); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// renewAt returns the renewal time of a certificate. random is between 0 and 1.
func renewAt(c *tls.Certificate, random float64) time.Time {
	life := c.Leaf.NotAfter.Sub(c.Leaf.NotBefore)
	return c.Leaf.NotBefore.Add(time.Duration((renewFrom + (renewTo-renewFrom)*random) * float64(life)))
}

func (r *Rotation) renew(ctx context.Context) error {
	client, reason, err := r.client()
	if err != nil {
		return fmt.Errorf("certs: client: %w", err)
	}
	next, err := request(ctx, r.cfg, r.cfg.clientRequest(), client, func() bool { return false })
	if err != nil {
		return errors.Join(err, reason)
	}
	r.current.Store(next)
	return nil
}

// client returns the client for the next request: that of the node, or, if its certificate
// has expired, that of Bootstrap. If there are no bootstrap credentials, it returns the
// former and the reason.
func (r *Rotation) client() (client kubernetes.Interface, reason, err error) {
	config := r.config
	if expires := r.Expires(); time.Now().After(expires) && r.cfg.Bootstrap != nil {
		bootstrap, err := r.cfg.Bootstrap()
		if err == nil {
			config = bootstrap
		} else {
			reason = fmt.Errorf("certs: client certificate expired at %v; bootstrap kubeconfig: %w", expires, err)
		}
	}
	client, err = r.cfg.Client(config)
	return client, reason, err
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
	config.GetClientCertificate = r.certificate
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
