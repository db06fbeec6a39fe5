package process

import (
	"context"
	"errors"
	"hash/fnv"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	goruntime "runtime"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A sandbox is a record and a directory. Its containers can start only while it is
// ready. Runtime.mu guards it.
type sandbox struct {
	rec sandboxRecord
}

// RunPodSandbox creates a sandbox. It is ready immediately and has an address of
// its own in 127.0.0.0/8 (on macOS 127.0.0.1), unless it uses the host network.
// No other part of config has an effect; see the package comment.
//
// A runtime handler is rejected, because it requests isolation.
func (r *Runtime) RunPodSandbox(_ context.Context, config *runtimeapi.PodSandboxConfig, runtimeHandler string) (string, error) {
	meta := config.GetMetadata()
	for _, f := range []struct{ name, value string }{{"name", meta.GetName()}, {"uid", meta.GetUid()}, {"namespace", meta.GetNamespace()}} {
		if f.value == "" {
			return "", status.Errorf(codes.InvalidArgument, "process: run sandbox: metadata has no %s", f.name)
		}
	}
	if runtimeHandler != "" {
		return "", status.Errorf(codes.InvalidArgument, "process: run sandbox %s: runtime handler %q is not supported: processes are not isolated", meta.GetName(), runtimeHandler)
	}
	ns := config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	rec := sandboxRecord{
		Version: formatVersion, ID: newID(), CreatedAt: time.Now().UnixNano(), Ready: true,
		Name: meta.GetName(), Namespace: meta.GetNamespace(), UID: meta.GetUid(), Attempt: meta.GetAttempt(),
		Labels: config.GetLabels(), Annotations: config.GetAnnotations(), LogDirectory: config.GetLogDirectory(),
		Network: int32(ns.GetNetwork()), PID: int32(ns.GetPid()), IPC: int32(ns.GetIpc()), TargetID: ns.GetTargetId(),
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return "", errClosed
	}
	used := map[string]bool{}
	for id, s := range r.sandboxes {
		if s.rec.Name == rec.Name && s.rec.Namespace == rec.Namespace && s.rec.UID == rec.UID && s.rec.Attempt == rec.Attempt {
			return "", status.Errorf(codes.AlreadyExists, "process: run sandbox: attempt %d of pod %s (%s) already exists as %s", rec.Attempt, rec.Name, rec.UID, id)
		}
		used[s.rec.IP] = true
	}
	if ns.GetNetwork() != runtimeapi.NamespaceMode_NODE {
		rec.IP = podIP(rec.ID, goruntime.GOOS, used)
	}
	if err := r.makeSandbox(rec); err != nil {
		return "", status.Errorf(codes.Internal, "process: run sandbox: %v", err)
	}
	r.sandboxes[rec.ID] = &sandbox{rec: rec}
	r.publishLocked(rec.ID, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, rec.ID)
	r.publishLocked(rec.ID, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, rec.ID)
	return rec.ID, nil
}

// makeSandbox creates the directory in tmp and renames it.
func (r *Runtime) makeSandbox(rec sandboxRecord) error {
	stage := r.dir.path("tmp", rec.ID)
	if err := os.Mkdir(stage, 0o711); err != nil {
		return err
	}
	err := r.dir.write(stage, filepath.Join(stage, "sandbox.json"), rec)
	if err == nil {
		err = os.Rename(stage, r.dir.sandbox(rec.ID))
	}
	if err != nil {
		r.clear(context.Background(), stage)
		return err
	}
	return nil
}

// podIP returns an address that no sandbox of this runtime has. The first candidate
// depends on the random ID, so that two agents on one host rarely use the same
// one. 127.0.0.0/16 is left to the host (127.0.0.1, 127.0.0.53, 127.0.1.1).
func podIP(id, goos string, used map[string]bool) string {
	if goos != "linux" {
		return "127.0.0.1" // the rest of the /8 needs configuration there
	}
	const lowest, count = 127<<24 | 1<<16, 254 << 16
	h := fnv.New32a()
	h.Write([]byte(id))
	for i := range uint32(count) {
		n := lowest + (h.Sum32()%count+i)%count
		if n&0xff == 0 || n&0xff == 0xff {
			continue // reads as a network's or a broadcast address
		}
		ip := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String()
		if !used[ip] {
			return ip
		}
	}
	return "127.0.0.1"
}

// StopPodSandbox makes a sandbox not ready, so that its containers can no longer
// be started, and kills its running containers. A sandbox that is stopped or does
// not exist is not an error.
func (r *Runtime) StopPodSandbox(ctx context.Context, podSandboxID string) error {
	r.mu.Lock()
	s, ok := r.sandboxes[podSandboxID]
	closed := r.closed
	if ok && s.rec.Ready && !closed {
		rec := s.rec
		rec.Ready = false
		dir := r.dir.sandbox(podSandboxID)
		// If the directory was removed, a later Runtime cannot load the sandbox as
		// ready, so no record is needed.
		if err := r.dir.write(dir, filepath.Join(dir, "sandbox.json"), rec); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.mu.Unlock()
			return status.Errorf(codes.Internal, "process: stop sandbox %s: %v", podSandboxID, err)
		}
		s.rec = rec
		r.publishLocked(podSandboxID, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, podSandboxID)
	}
	r.mu.Unlock()
	if closed {
		return errClosed
	}
	return r.forEachOf(podSandboxID, func(c *container) error { return r.stop(ctx, c, 0) })
}

// forEachOf calls f for each container of the sandbox, concurrently.
func (r *Runtime) forEachOf(sandboxID string, f func(*container) error) error {
	containers := r.find(func(c *container) bool { return c.rec.SandboxID == sandboxID })
	errs := make(chan error, len(containers))
	for _, c := range containers {
		go func() { errs <- f(c) }()
	}
	var all []error
	for range containers {
		all = append(all, <-errs)
	}
	return joinStatus(all)
}

// joinStatus joins errors and preserves the gRPC code.
func joinStatus(errs []error) error {
	all := errors.Join(errs...)
	if all == nil {
		return nil
	}
	for _, err := range errs {
		if err != nil {
			return status.Error(status.Code(err), all.Error())
		}
	}
	return nil
}

// RemovePodSandbox stops a sandbox and removes it with its containers and their
// working directories. Logs are kept: their directory is the caller's. A sandbox
// that does not exist is not an error.
func (r *Runtime) RemovePodSandbox(ctx context.Context, podSandboxID string) error {
	if err := r.StopPodSandbox(ctx, podSandboxID); err != nil {
		return err
	}
	if err := r.forEachOf(podSandboxID, func(c *container) error { return r.remove(ctx, c) }); err != nil {
		return err
	}
	var gone string
	defer func() { r.clear(ctx, gone) }() // without the lock: it may be large
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.sandboxes[podSandboxID]; !ok {
		return nil
	}
	var err error
	if gone, err = r.dir.discard(r.dir.sandbox(podSandboxID)); err != nil {
		return status.Errorf(codes.Internal, "process: remove sandbox %s: %v", podSandboxID, err)
	}
	r.publishLocked(podSandboxID, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT, podSandboxID)
	delete(r.sandboxes, podSandboxID)
	return nil
}

// PodSandboxStatus returns the configuration, the state and the address. A stopped
// sandbox has no address. It returns NotFound for an unknown ID.
func (r *Runtime) PodSandboxStatus(_ context.Context, podSandboxID string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	s, ok := r.sandboxes[podSandboxID]
	if r.closed {
		r.mu.Unlock()
		return nil, errClosed
	}
	if !ok {
		r.mu.Unlock()
		return nil, status.Errorf(codes.NotFound, "process: sandbox %q not found", podSandboxID)
	}
	st := s.status()
	r.mu.Unlock()
	resp := &runtimeapi.PodSandboxStatusResponse{Status: st, Timestamp: time.Now().UnixNano()}
	containers := r.find(func(c *container) bool { return c.rec.SandboxID == podSandboxID })
	for _, c := range containers {
		r.refresh(c)
		resp.ContainersStatuses = append(resp.ContainersStatuses, c.status())
	}
	if verbose {
		resp.Info = map[string]string{"dir": r.dir.sandbox(podSandboxID)}
	}
	return resp, nil
}

func (s *sandbox) state() runtimeapi.PodSandboxState {
	if s.rec.Ready {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

func (s *sandbox) metadata() *runtimeapi.PodSandboxMetadata {
	return &runtimeapi.PodSandboxMetadata{Name: s.rec.Name, Uid: s.rec.UID, Namespace: s.rec.Namespace, Attempt: s.rec.Attempt}
}

func (s *sandbox) status() *runtimeapi.PodSandboxStatus {
	st := &runtimeapi.PodSandboxStatus{
		Id: s.rec.ID, Metadata: s.metadata(), State: s.state(), CreatedAt: s.rec.CreatedAt,
		Labels: s.rec.Labels, Annotations: s.rec.Annotations,
		Network: &runtimeapi.PodSandboxNetworkStatus{},
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{
			Network: runtimeapi.NamespaceMode(s.rec.Network), Pid: runtimeapi.NamespaceMode(s.rec.PID),
			Ipc: runtimeapi.NamespaceMode(s.rec.IPC), TargetId: s.rec.TargetID,
		}}},
	}
	if s.rec.Ready {
		st.Network.Ip = s.rec.IP
	}
	return st
}

// ListPodSandbox returns the sandboxes that match all parts of the filter.
func (r *Runtime) ListPodSandbox(_ context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	var list []*runtimeapi.PodSandbox
	for id, s := range r.sandboxes {
		if filter.GetId() != "" && filter.GetId() != id ||
			filter.GetState() != nil && filter.GetState().GetState() != s.state() ||
			!selects(filter.GetLabelSelector(), s.rec.Labels) {
			continue
		}
		list = append(list, &runtimeapi.PodSandbox{
			Id: id, Metadata: s.metadata(), State: s.state(), CreatedAt: s.rec.CreatedAt,
			Labels: s.rec.Labels, Annotations: s.rec.Annotations,
		})
	}
	return list, nil
}

// selects reports whether labels contain all pairs of the selector.
func selects(selector, labels map[string]string) bool {
	for k, want := range selector {
		if got, ok := labels[k]; !ok || got != want {
			return false
		}
	}
	return true
}
