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

// A certificate is renewed when between these parts of its time are over: at
// another moment on each node.
const (
	renewFrom = 0.7
	renewTo   = 0.9
)

// renewPause is kept after a renewal, however little time the new certificate has by
// the clock of this node.
const renewPause = time.Minute

// A Rotation renews a node's certificate while it holds. (The manager of client-go
// does so too, but cannot be ended: it sleeps until the next certificate is due.)
type Rotation struct {
	cfg     Config
	ran     atomic.Bool // Run was called
	current atomic.Pointer[tls.Certificate]
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
	store, err := cfg.order().store(cfg.Dir)
	if err != nil {
		return nil, err
	}
	is, err := store.Current()
	if err != nil {
		return nil, fmt.Errorf("certs: the certificate in %s: %w", cfg.Dir, err)
	}
	r := &Rotation{cfg: cfg}
	r.current.Store(is)
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

// Expires is when the certificate of the moment ends.
func (r *Rotation) Expires() time.Time { return r.current.Load().Leaf.NotAfter }

// Run renews the certificate, again and again, until ctx ends. What fails is tried
// again, with longer and longer waits; one that is denied is asked for as well,
// since a later request may be approved. A second call returns an error.
func (r *Rotation) Run(ctx context.Context) error {
	if r.ran.Swap(true) {
		return errors.New("certs: Rotation.Run was called before")
	}
	for least := time.Duration(0); ; least = renewPause {
		if pause.For(ctx, max(least, time.Until(renewAt(r.current.Load(), rand.Float64())))) != nil {
			return nil
		}
		for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
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
			r.cfg.Logger.Warn("renew the certificate", "until", r.Expires(), "err", err)
			if pause.For(ctx, wait) != nil {
				return nil
			}
		}
		r.cfg.Logger.Info("certificate renewed; connections are opened anew", "until", r.Expires())
		r.dialer.CloseAll() // they show the old one
	}
}

// renewAt is when a certificate is renewed, luck being between 0 and 1.
func renewAt(c *tls.Certificate, luck float64) time.Time {
	life := c.Leaf.NotAfter.Sub(c.Leaf.NotBefore)
	return c.Leaf.NotBefore.Add(time.Duration((renewFrom + (renewTo-renewFrom)*luck) * float64(life)))
}

func (r *Rotation) renew(ctx context.Context) error {
	client, err := r.client()
	if err != nil {
		return fmt.Errorf("certs: client: %w", err)
	}
	next, err := request(ctx, r.cfg, r.cfg.order(), client)
	if err != nil {
		return err
	}
	r.current.Store(next)
	return nil
}

// client returns who asks for the next certificate: the node as it is, or, when it
// is nobody any more, whoever may ask for a first one.
func (r *Rotation) client() (kubernetes.Interface, error) {
	if time.Now().After(r.Expires()) && r.cfg.Bootstrap != nil {
		return r.cfg.Client(r.cfg.Bootstrap)
	}
	return r.cfg.Client(r.config)
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
