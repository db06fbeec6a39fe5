package containers

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// A service presents a Backend as a CRI runtime service to package cri. Everything that must outlive
// the agent is in the backend.
type service struct {
	unimplemented
	backend  Backend
	grouper  Grouper // nil if the backend is none, as the following
	execer   Execer
	attacher Attacher
	stats    StatsProvider
	puller   Puller
	updater  Updater
	watcher  Watcher
	logs     *instanceLogs
	node     string
	support  Support
	files    volumeFiles // the volumes that are data

	mu        sync.Mutex
	created   createdInstances         // not listed by the backend yet
	sandboxes map[string]sandboxRecord // by ID, without a Grouper: those of this agent
	stopped   map[string]bool          // IDs of stopped sandboxes
	ids       map[string]string        // the backend's IDs by Key, as last listed
}

var _ internalapi.RuntimeService = (*service)(nil)

func newService(cfg Config) *service {
	root := cmp.Or(cfg.Engine.Dirs.Root, "/var/lib/kubelet")
	s := &service{
		backend: cfg.Backend, node: cfg.Node, support: cfg.Support,
		created:   createdInstances{dir: filepath.Join(root, "created"), log: cfg.Engine.Logger},
		files:     volumeFiles{pods: map[types.UID]map[string]*runtime.Content{}, updated: map[string]map[string]*runtime.Content{}},
		sandboxes: map[string]sandboxRecord{}, stopped: map[string]bool{}, ids: map[string]string{},
	}
	if s.created.log == nil {
		s.created.log = slog.New(slog.DiscardHandler)
	}
	s.grouper, _ = compose.As[Grouper](cfg.Backend)
	s.execer, _ = compose.As[Execer](cfg.Backend)
	s.attacher, _ = compose.As[Attacher](cfg.Backend)
	s.stats, _ = compose.As[StatsProvider](cfg.Backend)
	s.puller, _ = compose.As[Puller](cfg.Backend)
	s.updater, _ = compose.As[Updater](cfg.Backend)
	s.watcher, _ = compose.As[Watcher](cfg.Backend)
	reader, _ := compose.As[LogReader](cfg.Backend)
	s.logs = newInstanceLogs(reader, filepath.Join(root, "logs"), s.created.log)
	return s
}

func (s *service) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "containers", RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1"}, nil
}

// Status reports a backend that can be listed as ready.
func (s *service) Status(ctx context.Context, _ bool) (*runtimeapi.StatusResponse, error) {
	if _, err := s.read(ctx); err != nil {
		return nil, err
	}
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
	}}}, nil
}

func (s *service) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	m := config.GetMetadata()
	box := sandboxRecord{
		ID: keyOf(m.GetName(), m.GetUid(), "/", m.GetAttempt()), Created: time.Now().UnixNano(), Metadata: m, Labels: config.Labels, Annotations: config.Annotations, Handler: handler,
		HostNetwork: config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE,
	}
	if s.grouper != nil {
		text, err := (&record{Node: s.node, Sandbox: box}).encode()
		if err != nil {
			return "", err
		}
		if _, err := s.grouper.RunGroup(ctx, Group{Key: box.ID, Record: text, Pod: podOf(m), Config: config}); err != nil {
			return "", backendError(ctx, "run group", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stopped, box.ID)
	if s.grouper == nil {
		s.sandboxes[box.ID] = box
	}
	return box.ID, nil
}

// StopPodSandbox stops whatever is in the sandbox, without a grace period.
func (s *service) StopPodSandbox(ctx context.Context, id string) error {
	v, err := s.read(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	for key, c := range s.created.read() {
		if c.Record.Sandbox.ID == id {
			s.created.remove(key)
		}
	}
	s.mu.Unlock()
	box := v.sandboxes[id]
	if box == nil {
		return nil
	}
	for _, c := range v.instances {
		if c.sandbox != id || c.state == nil || c.state.Phase == Exited {
			continue
		}
		if err := s.backend.Stop(ctx, c.state.ID, 0); err != nil {
			return backendError(ctx, "stop instance "+c.state.ID, err)
		}
	}
	if box.group != "" {
		if err := s.grouper.StopGroup(ctx, box.group); err != nil {
			return backendError(ctx, "stop group "+box.group, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped[id] = true
	return nil
}

// RemovePodSandbox removes the sandbox and its instances.
func (s *service) RemovePodSandbox(ctx context.Context, id string) error {
	if err := s.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	v, err := s.read(ctx)
	if err != nil {
		return err
	}
	for key, c := range v.instances {
		if c.sandbox != id || c.state == nil {
			continue
		}
		if err := s.backend.Remove(ctx, c.state.ID); err != nil {
			return backendError(ctx, "remove instance "+c.state.ID, err)
		}
		s.logs.remove(key)
	}
	if box := v.sandboxes[id]; box != nil && box.group != "" {
		if err := s.grouper.RemoveGroup(ctx, box.group); err != nil {
			return backendError(ctx, "remove group "+box.group, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sandboxes, id)
	delete(s.stopped, id)
	return nil
}

func (s *service) PodSandboxStatus(ctx context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	v, err := s.observe(ctx)
	if err != nil {
		return nil, err
	}
	box := v.sandboxes[id]
	if box == nil {
		return nil, notFound("sandbox", id)
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: box.status()}, nil
}

func (s *service) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	v, err := s.observe(ctx)
	if err != nil {
		return nil, err
	}
	var list []*runtimeapi.PodSandbox
	for id, b := range v.sandboxes {
		state := b.status().State
		if filter.GetId() != "" && filter.Id != id || filter.GetState() != nil && filter.State.State != state || !selects(filter.GetLabelSelector(), b.Labels) {
			continue
		}
		list = append(list, &runtimeapi.PodSandbox{
			Id: id, Metadata: b.Metadata, State: state, CreatedAt: b.Created, Labels: b.Labels, Annotations: b.Annotations, RuntimeHandler: b.Handler,
		})
	}
	return list, nil
}

func (b *sandbox) status() *runtimeapi.PodSandboxStatus {
	st := &runtimeapi.PodSandboxStatus{
		Id: b.ID, Metadata: b.Metadata, State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY, CreatedAt: b.Created,
		Labels: b.Labels, Annotations: b.Annotations, RuntimeHandler: b.Handler, Network: &runtimeapi.PodSandboxNetworkStatus{},
	}
	if b.ready {
		st.State = runtimeapi.PodSandboxState_SANDBOX_READY
		for i, ip := range b.ips {
			if b.HostNetwork { // the address is the node's
				break
			}
			if i == 0 {
				st.Network.Ip = ip
			} else {
				st.Network.AdditionalIps = append(st.Network.AdditionalIps, &runtimeapi.PodIP{Ip: ip})
			}
		}
	}
	if b.group == "" && st.Network.Ip == "" {
		st.Network = nil // unknown: an address of "" would be a reason to replace the sandbox
	}
	if b.HostNetwork {
		st.Linux = &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}}}
	}
	return st
}

// selects reports whether labels has all of selector.
func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func podOf(m *runtimeapi.PodSandboxMetadata) Pod {
	return Pod{UID: uidOf(m), Namespace: m.GetNamespace(), Name: m.GetName()}
}

func notFound(what, id string) error {
	return status.Errorf(codes.NotFound, "containers: %s %q not found", what, id)
}

// backendError adds the operation. The error of a done context is kept, also if the backend hides it.
func backendError(ctx context.Context, operation string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("containers: %s: %w: %w", operation, cause, err)
	}
	return fmt.Errorf("containers: %s: %w", operation, err)
}
