package kubelet

import (
	"context"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/kubeparts/kubeparts/kube/certs"
	"github.com/kubeparts/kubeparts/kube/client"
)

// A connection is the connection to the API server.
type connection struct {
	*client.Connection

	// closeAll closes all connections. Nil: they are the caller's.
	closeAll func()

	// expires returns when the client certificate expires. Nil: it is not rotated.
	expires func() time.Time

	run []component
}

// newConnection connects to the API server: with the client of the Config, or with a
// kubeconfig and a certificate that is requested if the kubeconfig has none that is valid,
// and renewed. The bootstrap kubeconfig is read only to request a certificate: kubeadm
// deletes it after the first use.
func newConnection(ctx context.Context, b base) (connection, error) {
	if b.cfg.Cluster.Client != nil {
		return connection{Connection: b.cfg.Cluster.Client}, nil
	}
	cluster := b.cfg.Cluster
	cfg := client.Config{
		Kubeconfig: cluster.Kubeconfig, UserAgent: "kubelet/" + cluster.Version,
		QPS: float32(deref(b.k.KubeAPIQPS)), Burst: int(b.k.KubeAPIBurst),
		EventQPS: rateLimit(b.k.EventRecordQPS), EventBurst: int(b.k.EventBurst), Wrap: b.traces.client(b.metrics.api.Client),
		JSON: b.k.ContentType == "application/json",
	}
	certificates := certs.Config{
		NodeName: b.cfg.NodeName, Dir: cluster.CertDir, Kubeconfig: cluster.Kubeconfig, Rotate: b.k.RotateCertificates,
		Renewed: b.metrics.api.ClientRenewed, Logger: b.logger,
	}
	if cluster.BootstrapKubeconfig != "" {
		certificates.Bootstrap = func() (*rest.Config, error) {
			return client.RESTConfig(client.Config{Kubeconfig: cluster.BootstrapKubeconfig})
		}
		if err := certs.Bootstrap(ctx, certificates); err != nil {
			return connection{}, err
		}
	}
	config, err := client.RESTConfig(cfg)
	if err != nil {
		return connection{}, err
	}
	var out connection
	if !certificates.Rotates(config) {
		if len(config.CertData) > 0 {
			// Unlike one in a file, it cannot be replaced while the kubelet runs.
			if err := certs.ValidConfig(config, "", time.Now()); err != nil {
				return out, fmt.Errorf("kubeconfig %s: %w", cluster.Kubeconfig, err)
			}
		}
		dialer := connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
		config.Dial, out.closeAll = dialer.DialContext, dialer.CloseAll
		out.Connection, err = client.ConnectTo(config, cfg)
		return out, err
	}
	rotation, err := certs.NewRotation(config, certificates)
	if err != nil {
		return out, err
	}
	out.closeAll, out.expires, out.run = rotation.CloseConnections, rotation.Expires, []component{rotation.Run}
	out.Connection, err = client.ConnectTo(rotation.Config(), cfg)
	return out, err
}

// close closes the connections of a kubelet that has stopped.
func (c connection) close() error {
	if c.closeAll != nil {
		c.closeAll()
	}
	return nil
}

// rateLimit returns events per second for package client, where a negative value is no
// limit. In a KubeletConfiguration 0 is none.
func rateLimit(perSecond *int32) float32 {
	if perSecond != nil && *perSecond == 0 {
		return -1
	}
	return float32(deref(perSecond))
}
