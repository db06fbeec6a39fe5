package kubelet

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/claim"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/volume"
)

// The stores are the first wing of a kubelet: what the others read. They hold the lock of the
// root directory, the pod table, the listeners, the connection to the API server with its
// caches, and the statuses of the earlier process.
type stores struct {
	base // its record includes the recorder of the cluster

	history  *statuspage.History
	ports    ports
	cluster  *cluster     // nil: the kubelet is standalone
	object   *nodeObject  // nil: the same
	files    *objectFiles // nil: there are none
	snapshot *snapshot    // nil: the API server has the statuses
	hostIPs  func() []string

	cleanups cleanups
}

// openStores locks the root directory first, so that nothing is changed that another process
// uses, and opens the ports, so that a conflict is detected before anything else is changed.
func openStores(ctx context.Context, cfg Config) (_ *stores, err error) {
	release, err := claim.Take(claim.Config{
		Root: cfg.RootDir, RuntimeEndpoint: cfg.Configuration.ContainerRuntimeEndpoint, PodLogsDir: cfg.Configuration.PodLogsDir,
		CgroupRoot: claimedCgroup(cfg), Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	s := &stores{history: new(statuspage.History)}
	s.cleanups.add(func() error { release(); return nil })
	defer func() {
		if err != nil {
			err = errors.Join(err, s.cleanups.run())
		}
	}()
	if s.base, err = openBase(ctx, cfg, s.history); err != nil {
		return nil, err
	}
	s.cleanups.add(s.traces.close)
	setProcessLimits(s.base)
	if s.ports, err = openPorts(s.base, clustered(cfg)); err != nil {
		return nil, err
	}
	s.cleanups.add(s.ports.close)
	if err := s.join(ctx); err != nil {
		return nil, err
	}
	detected := configuredIPs(cfg.Host.IPs, agent.InterfaceIPs())
	s.hostIPs = func() []string { return s.object.hostIPs(detected) }
	if s.files, err = newObjectFiles(s.base); err != nil {
		return nil, err
	}
	s.snapshot, err = newSnapshot(s.base, s.cluster)
	return s, err
}

// openBase returns the base of all subsystems.
func openBase(ctx context.Context, cfg Config, history *statuspage.History) (b base, err error) {
	b = base{
		cfg: cfg, k: cfg.Configuration, nodeRef: nodeRef(cfg.NodeName), record: recordTo(cfg.Record, history.Record),
		pods: pods{new(podworker.Table)}, queues: new(queues), logger: cfg.Logger, userNamespace: newUserNamespace(cfg.Configuration),
	}
	b.shutdown = newShutdownState(cfg, b.queues)
	b.health = &podPacer{notify: b.pods.PodChanged}
	if b.metrics, err = newCounters(cfg.NodeName, cfg.Cluster.Version); err != nil {
		return b, err
	}
	b.traces, err = newTraces(ctx, b)
	return b, err
}

// join connects to the API server, if there is one.
func (s *stores) join(ctx context.Context) error {
	if !clustered(s.cfg) {
		return nil
	}
	conn, err := newConnection(ctx, s.base)
	if err != nil {
		return err
	}
	s.cleanups.add(conn.close)
	events, err := newEvents(conn.base(s.base), conn)
	if err != nil {
		return err
	}
	s.record = recordTo(s.record, events.Record)
	s.object = newNodeObject(s.base)
	s.cluster, err = newCluster(conn.base(s.base), clusterDeps{conn: conn, events: events, object: s.object, mounts: volume.CanMount()})
	return err
}

func (s *stores) components() []component {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.components(s.base)
}

// claimedCgroup returns the parent of the cgroups that this process will manage; "" if it
// manages none.
func claimedCgroup(cfg Config) string {
	if cfg.Runtime.Processes || !*cfg.Configuration.CgroupsPerQOS || os.Geteuid() != 0 {
		return ""
	}
	return filepath.Join("/", cfg.Configuration.CgroupRoot)
}
