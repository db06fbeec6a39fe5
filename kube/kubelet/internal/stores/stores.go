// Package stores is the first wing of a kubelet: what the others read.
package stores

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/claim"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/kube/kubelet/options"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/volume"
)

// The Stores are the first wing of a kubelet: what the others read. They hold the lock of the
// root directory, the pod table, the listeners, the connection to the API server with its
// caches, and the statuses of the earlier process.
type Stores struct {
	Base // its record includes the recorder of the cluster

	History  *statuspage.History
	Ports    Ports
	Cluster  *Cluster      // nil: the kubelet is standalone
	Object   *NodeObject   // nil: the same
	Local    *LocalObjects // nil: there are none
	Snapshot *Snapshot     // nil: the API server has the statuses
	HostIPs  func() []string

	Cleanups Cleanups
}

// Open locks the root directory first, so that nothing is changed that another process
// uses, and opens the ports, so that a conflict is detected before anything else is changed.
func Open(ctx context.Context, cfg options.Config) (_ *Stores, err error) {
	release, err := claim.Take(claim.Config{
		Root: cfg.RootDir, RuntimeEndpoint: cfg.Configuration.ContainerRuntimeEndpoint, PodLogsDir: cfg.Configuration.PodLogsDir,
		CgroupRoot: claimedCgroup(cfg), Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	s := &Stores{History: new(statuspage.History)}
	s.Cleanups.Add(func() error { release(); return nil })
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Cleanups.Run())
		}
	}()
	if s.Base, err = openBase(ctx, cfg, s.History); err != nil {
		return nil, err
	}
	s.Cleanups.Add(s.Traces.close)
	setProcessLimits(s.Base)
	if s.Ports, err = OpenPorts(s.Base, Clustered(cfg)); err != nil {
		return nil, err
	}
	s.Cleanups.Add(s.Ports.Close)
	if err := s.join(ctx); err != nil {
		return nil, err
	}
	detected := ConfiguredIPs(cfg.Host.IPs, agent.InterfaceIPs())
	s.HostIPs = func() []string { return s.Object.HostIPs(detected) }
	if s.Local, err = newLocalObjects(s.Base); err != nil {
		return nil, err
	}
	s.Snapshot, err = newSnapshot(s.Base, s.Cluster)
	return s, err
}

// openBase returns the base of all subsystems.
func openBase(ctx context.Context, cfg options.Config, history *statuspage.History) (b Base, err error) {
	b = Base{
		Config: cfg, Configuration: cfg.Configuration, NodeRef: NodeRef(cfg.NodeName), Record: RecordTo(cfg.Record, history.Record),
		Pods: Pods{new(podworker.Table)}, Queues: new(Queues), Logger: cfg.Logger, UserNamespace: NewUserNamespace(cfg.Configuration),
	}
	b.Shutdown = newShutdownState(cfg, b.Queues)
	b.Health = NewPodPacer(b.Pods.PodChanged)
	if b.Metrics, err = NewCounters(cfg.NodeName, cfg.Cluster.Version); err != nil {
		return b, err
	}
	b.Traces, err = newTraces(ctx, b)
	return b, err
}

// join connects to the API server, if there is one.
func (s *Stores) join(ctx context.Context) error {
	if !Clustered(s.Config) {
		return nil
	}
	conn, err := NewConnection(ctx, s.Base)
	if err != nil {
		return err
	}
	s.Cleanups.Add(conn.Close)
	events, err := NewEvents(conn.Base(s.Base), conn)
	if err != nil {
		return err
	}
	s.Record = RecordTo(s.Record, events.Record)
	s.Object = NewNodeObject(s.Base)
	s.Cluster, err = NewCluster(conn.Base(s.Base), ClusterDeps{Conn: conn, Events: events, Object: s.Object, Mounts: volume.CanMount()})
	return err
}

func (s *Stores) Components() []Component {
	if s.Cluster == nil {
		return nil
	}
	return s.Cluster.components(s.Base)
}

// claimedCgroup returns the parent of the cgroups that this process will manage; "" if it
// manages none.
func claimedCgroup(cfg options.Config) string {
	if !HostContainers(cfg) || !*cfg.Configuration.CgroupsPerQOS || os.Geteuid() != 0 {
		return ""
	}
	return filepath.Join("/", cfg.Configuration.CgroupRoot)
}
