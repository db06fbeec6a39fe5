package stores

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

// A Cluster has the clients of an API server. A standalone kubelet has a nil
// *Cluster.
type Cluster struct {
	Conn    connection
	events  *client.Events
	Object  *NodeObject
	Source  podsource.PodSource
	Pods    *client.Pods
	status  *client.Statuses
	Mirrors *client.Mirrors
	Objects *client.Objects
	csiNode *client.CSINodeInit // nil: this process cannot mount
	Certs   *client.PodCertificates
}

type ClusterDeps struct {
	Conn   connection
	Events *client.Events
	Object *NodeObject
	Mounts bool // CSI drivers can register
}

// NewEvents returns the recorder of events; nil for a standalone kubelet.
func NewEvents(b Base, conn connection) (*client.Events, error) {
	return client.NewEvents(client.EventsConfig{Client: conn.Events, NodeName: b.Config.NodeName, Hooks: b.Metrics.API.Events(), Logger: b.Logger})
}

// RecordTo returns a function that passes events to each of the recorders.
func RecordTo(recorders ...func(runtime.Event)) func(runtime.Event) {
	return func(e runtime.Event) {
		for _, record := range recorders {
			record(e)
		}
	}
}

func NewCluster(b Base, d ClusterDeps) (*Cluster, error) {
	strategy, err := client.ParseStrategy(string(b.Configuration.ConfigMapAndSecretChangeDetectionStrategy))
	if err != nil {
		return nil, fmt.Errorf("configMapAndSecretChangeDetectionStrategy: %w", err)
	}
	changed := func(kind, namespace, name string) { b.Queues.Objects.Add(ObjectName{kind, namespace, name}) }
	c := &Cluster{Conn: d.Conn, events: d.Events, Object: d.Object}
	c.Objects, err = client.NewObjects(client.ObjectsConfig{
		Client: d.Conn.API, Strategy: strategy, Logger: b.Logger,
		TTL: func() time.Duration {
			if o := d.Object.Best(); o != nil {
				return client.TTLOf(o)
			}
			return 0
		},
		Changed: changed,
	})
	if err != nil {
		return nil, err
	}
	c.Pods, err = client.NewPods(client.PodsConfig{
		Client: d.Conn.API, NodeName: b.Config.NodeName, Ready: d.Object.Exists, Recovered: b.Queues.Statuses.Notify, Hooks: b.Metrics.API.Pods(), Logger: b.Logger,
	})
	if err != nil {
		return nil, err
	}
	c.status, err = client.NewStatuses(client.StatusesConfig{Client: d.Conn.API, Pods: c.Pods, Record: d.Events.Record, Logger: b.Logger})
	if err != nil {
		return nil, err
	}
	if c.Mirrors, err = client.NewMirrors(client.MirrorsConfig{Client: d.Conn.API, Node: d.Object.owner, Retry: b.Pods.SyncStatic}); err != nil {
		return nil, err
	}
	c.Certs, err = client.NewPodCertificates(client.PodCertificatesConfig{
		Client: d.Conn.API, Node: d.Object.owner, NodeName: b.Config.NodeName, Changed: changed, Logger: b.Logger,
	})
	if err != nil {
		return nil, err
	}
	if d.Mounts {
		c.csiNode = &client.CSINodeInit{
			CSINode: CSINodeOf(b, d.Conn), Registered: d.Object.Exists,
			Changed: b.Queues.Node.Notify, Logger: b.Logger,
		}
	}
	c.Source, err = c.checkpointedSource(b)
	return c, err
}

// checkpointedSource returns the source of the pods of the API server, with a checkpoint if
// the Config requires it. Without a checkpoint of the node it is written, but not read.
func (c *Cluster) checkpointedSource(b Base) (podsource.PodSource, error) {
	if c.Object.checkpoint == nil {
		return c.Pods, nil
	}
	patience := SourceTimeout
	if c.Object.Best() == nil {
		patience = math.MaxInt64
	}
	return Checkpointed(b, podsource.APISource, c.Pods, patience)
}

// StorageErr returns why volumes of CSI drivers are not available; nil if they are.
func (c *Cluster) StorageErr() error {
	if c.csiNode == nil {
		return nil
	}
	return c.csiNode.Err()
}

// components returns what runs for the cluster, without the node.
func (c *Cluster) components(b Base) []Component {
	all := append([]Component{
		c.status.Run, c.events.Run, c.Objects.Run, c.Certs.Run, c.Mirrors.Run,
		func(ctx context.Context) error {
			if c.Object.Registered(ctx) == nil {
				b.Pods.SyncStatic() // mirror pods need the node (rule sl-65)
			}
			return nil
		},
	}, c.Conn.Run...)
	if c.csiNode != nil {
		all = append(all, c.csiNode.Run)
	}
	return all
}

// ErrNoCluster is the reason why an option that requires an API server is an error.
var ErrNoCluster = errors.New("there is no API server: Config.Cluster is empty")

// CSINodeOf returns the CSINode of the node.
func CSINodeOf(b Base, conn connection) client.CSINode {
	return client.CSINode{Client: conn.API, NodeName: b.Config.NodeName, MigratedPlugins: csimigration.Plugins()}
}
