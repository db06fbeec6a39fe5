package kubelet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/csimigration"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime"
)

// A cluster has the clients of an API server. A nil *cluster is the one of a standalone
// kubelet.
type cluster struct {
	conn    connection
	events  *client.Events
	object  *nodeObject
	source  podsource.PodSource
	pods    *client.Pods
	status  *client.Statuses
	mirrors *client.Mirrors
	objects *client.Objects
	csiNode *client.CSINodeInit // nil: this process cannot mount
	certs   *client.PodCertificates
}

type clusterDeps struct {
	conn   connection
	events *client.Events
	object *nodeObject
	mounts bool // CSI drivers can register
}

// newEvents returns the recorder of events; nil for a standalone kubelet.
func newEvents(b base, conn connection) (*client.Events, error) {
	return client.NewEvents(client.EventsConfig{Client: conn.Events, NodeName: b.cfg.NodeName, Hooks: b.metrics.api.Events(), Logger: b.logger})
}

// recordTo returns a function that passes events to each of the recorders.
func recordTo(recorders ...func(runtime.Event)) func(runtime.Event) {
	return func(e runtime.Event) {
		for _, record := range recorders {
			record(e)
		}
	}
}

func newCluster(b base, d clusterDeps) (*cluster, error) {
	strategy, err := client.ParseStrategy(string(b.k.ConfigMapAndSecretChangeDetectionStrategy))
	if err != nil {
		return nil, fmt.Errorf("configMapAndSecretChangeDetectionStrategy: %w", err)
	}
	changed := func(kind, namespace, name string) { b.queues.objects.add(objectName{kind, namespace, name}) }
	c := &cluster{conn: d.conn, events: d.events, object: d.object}
	c.objects, err = client.NewObjects(client.ObjectsConfig{
		Client: d.conn.API, Strategy: strategy, Logger: b.logger,
		TTL: func() time.Duration {
			if o := d.object.best(); o != nil {
				return client.TTLOf(o)
			}
			return 0
		},
		Changed: changed,
	})
	if err != nil {
		return nil, err
	}
	c.pods, err = client.NewPods(client.PodsConfig{
		Client: d.conn.API, NodeName: b.cfg.NodeName, Ready: d.object.registered, Recovered: b.queues.statuses.notify, Hooks: b.metrics.api.Pods(), Logger: b.logger,
	})
	if err != nil {
		return nil, err
	}
	c.status, err = client.NewStatuses(client.StatusesConfig{Client: d.conn.API, Pods: c.pods, Record: d.events.Record, Logger: b.logger})
	if err != nil {
		return nil, err
	}
	if c.mirrors, err = client.NewMirrors(client.MirrorsConfig{Client: d.conn.API, Node: d.object.owner, Retry: b.pods.SyncStatic}); err != nil {
		return nil, err
	}
	c.certs, err = client.NewPodCertificates(client.PodCertificatesConfig{
		Client: d.conn.API, Node: d.object.owner, NodeName: b.cfg.NodeName, Changed: changed, Logger: b.logger,
	})
	if err != nil {
		return nil, err
	}
	if d.mounts {
		c.csiNode = &client.CSINodeInit{
			CSINode: csiNodeOf(b, d.conn), Registered: d.object.registered,
			Changed: b.queues.node.notify, Logger: b.logger,
		}
	}
	c.source, err = c.checkpointedSource(b)
	return c, err
}

// checkpointedSource returns the source of the pods of the API server, with a checkpoint if
// the Config requires it. Without a checkpoint of the node it is written, but not read.
func (c *cluster) checkpointedSource(b base) (podsource.PodSource, error) {
	if c.object.checkpoint == nil {
		return c.pods, nil
	}
	patience := sourceTimeout
	if c.object.best() == nil {
		patience = math.MaxInt64
	}
	return checkpointed(b, podsource.APISource, c.pods, patience)
}

// storageErr returns why volumes of CSI drivers are not available; nil if they are.
func (c *cluster) storageErr() error {
	if c.csiNode == nil {
		return nil
	}
	return c.csiNode.Err()
}

// components returns what runs for the cluster, without the node.
func (c *cluster) components(b base) []component {
	all := append([]component{
		c.status.Run, c.events.Run, c.objects.Run, c.certs.Run, c.mirrors.Run,
		func(ctx context.Context) error {
			if c.object.registered(ctx) == nil {
				b.pods.SyncStatic() // mirror pods need the node (rule sl-65)
			}
			return nil
		},
	}, c.conn.run...)
	if c.csiNode != nil {
		all = append(all, c.csiNode.Run)
	}
	return all
}

// errNoCluster is the reason why an option that requires an API server is an error.
var errNoCluster = errors.New("there is no API server: Config.Cluster is empty")

// csiNodeOf returns the CSINode of the node.
func csiNodeOf(b base, conn connection) client.CSINode {
	return client.CSINode{Client: conn.API, NodeName: b.cfg.NodeName, MigratedPlugins: csimigration.Plugins()}
}
