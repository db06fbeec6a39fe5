package stores

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/kubeparts/kubeparts/kube/certs"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/logs"
)

// A connection is the connection to the API server.
type connection struct {
	*client.Connection

	// closeAll closes all connections. Nil: they are the caller's.
	CloseAll func()

	// expires returns when the client certificate expires. Nil: it is not rotated.
	Expires func() time.Time

	Run []Component

	// logger is for components that retry until the API server responds.
	logger *slog.Logger
}

// NewConnection connects to the API server: with the client of the Config, or with a
// kubeconfig and a certificate that is requested if the kubeconfig has none that is valid,
// and renewed. With rotateCertificates the first one is requested when the components run, as
// the kubelet does; without, NewConnection blocks until it is issued. The bootstrap kubeconfig
// is read only to request a certificate: kubeadm deletes it after the first use.
func NewConnection(ctx context.Context, b Base) (connection, error) {
	if b.Config.Cluster.Client != nil {
		return connection{Connection: b.Config.Cluster.Client, logger: b.Logger}, nil
	}
	cluster, answered := b.Config.Cluster, new(atomic.Bool)
	cfg := client.Config{
		Kubeconfig: cluster.Kubeconfig, UserAgent: "kubelet/" + cluster.Version,
		QPS: float32(Deref(b.Configuration.KubeAPIQPS)), Burst: int(b.Configuration.KubeAPIBurst),
		EventQPS: RateLimit(b.Configuration.EventRecordQPS), EventBurst: int(b.Configuration.EventBurst), Wrap: b.Traces.client(observe(answered, b.Metrics.API.Client)),
		JSON: b.Configuration.ContentType == "application/json",
	}
	certificates := certs.Config{
		NodeName: b.Config.NodeName, Dir: cluster.CertDir, Kubeconfig: cluster.Kubeconfig, Rotate: b.Configuration.RotateCertificates,
		Renewed: b.Metrics.API.ClientRenewed, Logger: b.Logger,
	}
	if algorithm, _ := config.KeyAlgorithms(b.Configuration); b.Configuration.RotateCertificates {
		certificates.KeyAlgorithm = certs.KeyAlgorithm(algorithm)
	}
	if cluster.BootstrapKubeconfig != "" {
		certificates.Bootstrap = func() (*rest.Config, error) {
			return client.RESTConfig(client.Config{Kubeconfig: cluster.BootstrapKubeconfig})
		}
	}
	out := connection{logger: slog.New(logs.Repeats(b.Logger.Handler(), func() bool { return !answered.Load() }))}
	if certificates.Bootstrap != nil && b.Configuration.RotateCertificates && certificates.Bootstrapped() != nil {
		// The static pods run meanwhile. On a control-plane node of kubeadm, the API server that issues the
		// certificate is one of them.
		certificates.Logger = out.logger
		rotation, err := certs.NewPending(certificates)
		return out.rotated(rotation, cfg, err)
	}
	if certificates.Bootstrap != nil {
		if err := certs.Bootstrap(ctx, certificates); err != nil {
			return connection{}, err
		}
	}
	config, err := client.RESTConfig(cfg)
	if err != nil {
		return connection{}, err
	}
	if !certificates.Rotates(config) {
		if len(config.CertData) > 0 {
			// Unlike one in a file, it cannot be replaced while the kubelet runs.
			if err := certs.ValidConfig(config, "", time.Now()); err != nil {
				return out, fmt.Errorf("kubeconfig %s: %w", cluster.Kubeconfig, err)
			}
		}
		dialer := connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
		config.Dial, out.CloseAll = dialer.DialContext, dialer.CloseAll
		out.Connection, err = client.ConnectTo(config, cfg)
		return out, err
	}
	certificates.Logger = out.logger
	rotation, err := certs.NewRotation(config, certificates)
	return out.rotated(rotation, cfg, err)
}

// rotated returns c with clients whose certificate is rotated.
func (c connection) rotated(rotation *certs.Rotation, cfg client.Config, err error) (connection, error) {
	if err != nil {
		return c, err
	}
	c.CloseAll, c.Expires, c.Run = rotation.CloseConnections, rotation.Expires, []Component{rotation.Run}
	c.Connection, err = client.ConnectTo(rotation.Config(), cfg)
	return c, err
}

// observe returns a wrapper of transports that also sets answered when a request succeeds.
func observe(answered *atomic.Bool, wrap func(http.RoundTripper) http.RoundTripper) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return observer{wrap(next), answered} }
}

type observer struct {
	http.RoundTripper
	answered *atomic.Bool
}

func (o observer) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.RoundTripper.RoundTrip(r)
	if err == nil && resp.StatusCode < http.StatusBadRequest {
		o.answered.Store(true)
	}
	return resp, err
}

// WrappedRoundTripper returns the inner transport, as client-go requires.
func (o observer) WrappedRoundTripper() http.RoundTripper { return o.RoundTripper }

// Base returns b for the components that use the connection.
func (c connection) Base(b Base) Base {
	b.Logger = c.logger
	return b
}

// Close closes the connections of a kubelet that has stopped.
func (c connection) Close() error {
	if c.CloseAll != nil {
		c.CloseAll()
	}
	return nil
}

// RateLimit returns events per second for package client, where a negative value is no
// limit. In a KubeletConfiguration 0 is none.
func RateLimit(perSecond *int32) float32 {
	if perSecond != nil && *perSecond == 0 {
		return -1
	}
	return float32(Deref(perSecond))
}
