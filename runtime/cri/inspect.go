package cri

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/logs"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

// PodStatus implements [runtime.Lister] with two list calls and a status call for each
// sandbox and container, and without a call if an announced status is allowed and the last
// event contains one. The status of an exited container is cached.
func (r *Runtime) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	if runtime.AnnouncedAllowed(ctx) {
		if st := r.announcedStatus(uid); st != nil {
			return st, nil
		}
	}
	changed := r.announcements.inspecting(uid)
	st := &runtime.PodStatus{UID: uid, ObservedAt: time.Now()}
	sandboxes, containers, err := r.list(ctx, uid)
	if err != nil {
		return nil, err
	}
	// Requests do not depend on the order of the runtime's lists.
	slices.SortFunc(sandboxes, func(a, b *runtimeapi.PodSandbox) int {
		return newest(nanos(a.CreatedAt), nanos(b.CreatedAt), a.Id, b.Id)
	})
	slices.SortFunc(containers, func(a, b *runtimeapi.Container) int {
		return newest(nanos(a.CreatedAt), nanos(b.CreatedAt), a.Id, b.Id)
	})
	for _, s := range sandboxes {
		one, err := r.sandboxStatus(ctx, uid, s.Id)
		if isNotFound(err) {
			continue // removed since it was listed
		}
		if err != nil {
			return nil, err
		}
		st.Sandboxes = append(st.Sandboxes, one)
		st.Source = cmp.Or(st.Source, s.Annotations[runtime.ConfigSourceAnnotation])
		st.Name, st.Namespace = s.Metadata.Name, s.Metadata.Namespace
	}
	rec := r.checkpoints.get(uid)
	mounted := map[string][]string{}
	for _, c := range containers {
		if st.Name == "" {
			st.Name, st.Namespace = c.Labels[podconfig.LabelPodName], c.Labels[podconfig.LabelPodNamespace]
		}
		if c.State == runtimeapi.ContainerState_CONTAINER_EXITED && r.cachedTermination(st, c.Id, mounted) {
			continue
		}
		answer, err := r.containerStatus(ctx, c.Id)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		st.Containers = append(st.Containers, r.describe(c.PodSandboxId, answer, rec))
		mounted[c.Id] = mountedImages(answer)
	}
	r.complete(st, mounted)
	r.announcements.inspected(st, changed)
	return st, nil
}

// cachedTermination adds the cached status of an exited container, and reports whether there is one.
func (r *Runtime) cachedTermination(st *runtime.PodStatus, id string, mounted map[string][]string) bool {
	was, ok := r.terminations.get(st.UID, id)
	if !ok {
		return false
	}
	st.Containers = append(st.Containers, was)
	if images, ok := r.imageMounts.get(st.UID, id); ok {
		mounted[id] = images
	}
	return true
}

// complete sorts the sandboxes and containers of a status, adds what only the checkpoint contains, and caches
// what does not change.
func (r *Runtime) complete(st *runtime.PodStatus, mounted map[string][]string) {
	rec := r.checkpoints.get(st.UID) // read after the exits: it is written before the kills
	for i := range st.Containers {
		c := &st.Containers[i]
		c.Replaced = rec.Replaced[c.Name] == runtimeID(c.ID)
		c.Starting = c.State == runtime.ContainerRunning && rec.PendingPostStart[c.Name] == runtimeID(c.ID)
	}
	slices.SortFunc(st.Sandboxes, func(a, b runtime.SandboxStatus) int {
		return newestSandbox(a.Attempt, b.Attempt, a.CreatedAt, b.CreatedAt, a.ID, b.ID)
	})
	newestFirst(st.Containers, func(c *runtime.ContainerStatus) instanceOrder {
		return instanceOrder{c.Name, int64(c.RestartCount), c.CreatedAt, c.ID}
	})
	if len(st.Sandboxes) > 0 && st.Sandboxes[0].State == runtime.SandboxReady {
		st.IPs = slices.Clone(st.Sandboxes[0].IPs)
	}
	r.terminations.update(st)
	r.imageMounts.update(st.UID, mounted)
}

func (r *Runtime) sandboxStatus(ctx context.Context, uid types.UID, id string) (runtime.SandboxStatus, error) {
	answer, err := r.cfg.Runtime.PodSandboxStatus(r.quiet(ctx), id, false)
	if err != nil {
		return runtime.SandboxStatus{}, fmt.Errorf("cri: status of sandbox %s: %w", id, err)
	}
	s := answer.GetStatus()
	if s.Id != id { // later calls use the ID of the response
		return runtime.SandboxStatus{}, fmt.Errorf("cri: status of sandbox %s: runtime returned the status of %q", id, s.Id)
	}
	r.adoptUserNamespace(uid, s.GetLinux().GetNamespaces().GetOptions().GetUsernsOptions())
	return describeSandbox(s), nil
}

func describeSandbox(s *runtimeapi.PodSandboxStatus) runtime.SandboxStatus {
	return runtime.SandboxStatus{
		ID: s.Id, State: sandboxState(s.State), Attempt: s.Metadata.Attempt, CreatedAt: nanos(s.CreatedAt),
		HostNetwork:     s.GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE,
		NetworkReported: s.Network != nil,
		IPs:             addresses(s.Network), RuntimeHandler: s.RuntimeHandler,
	}
}

// adoptUserNamespace keeps the IDs of a sandbox's user namespace from other pods.
func (r *Runtime) adoptUserNamespace(pod types.UID, used *runtimeapi.UserNamespace) {
	if r.cfg.Providers.UserNamespaces == nil || used.GetMode() != runtimeapi.NamespaceMode_POD || len(used.GetUids()) == 0 {
		return
	}
	m := userns.Mappings{UIDs: mappings(used.Uids), GIDs: mappings(used.Gids)}
	if err := r.cfg.Providers.UserNamespaces.Adopt(pod, m); err != nil {
		r.cfg.Logger.Error("Could not record the user namespace of a sandbox", "podUID", pod, "err", err)
	}
}

// addresses returns the sandbox's addresses, the primary one first; nil if one of them is
// invalid (rule rt-8).
func addresses(n *runtimeapi.PodSandboxNetworkStatus) []string {
	if n.GetIp() == "" {
		return nil
	}
	ips := []string{n.Ip}
	for _, more := range n.AdditionalIps {
		ips = append(ips, more.GetIp())
	}
	for i, ip := range ips {
		addr, err := netip.ParseAddr(ip)
		if err != nil {
			return nil
		}
		ips[i] = addr.String()
	}
	return ips
}

func (r *Runtime) containerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	answer, err := r.cfg.Runtime.ContainerStatus(r.quiet(ctx), id, false)
	if err != nil {
		return nil, fmt.Errorf("cri: status of container %s: %w", id, err)
	}
	if answer.Status.Id != id {
		return nil, fmt.Errorf("cri: status of container %s: runtime returned the status of %q", id, answer.Status.Id)
	}
	return answer.Status, nil
}

// describe converts the status of a container in a sandbox.
func (r *Runtime) describe(sandbox string, s *runtimeapi.ContainerStatus, rec *podCheckpoint) runtime.ContainerStatus {
	c := runtime.ContainerStatus{
		ID: r.id(s.Id), Name: s.Metadata.Name, SandboxID: sandbox, State: containerState(s.State),
		RestartCount: podconfig.RestartCountOf(s.Annotations), Hash: podconfig.HashOf(s.Annotations),
		Image: s.GetImage().GetImage(), ImageID: s.ImageId, ImageRef: s.ImageRef, User: userOf(s.GetUser()),
		StopSignal: podconfig.StopSignalOf(s.GetStopSignal()),
		CreatedAt:  nanos(s.CreatedAt), LogPath: s.LogPath,
	}
	if c.ImageID == "" {
		c.ImageID = s.ImageRef
	}
	if asked := s.GetImage().GetUserSpecifiedImage(); asked != "" {
		c.Image = asked
	}
	if c.State != runtime.ContainerCreated {
		c.StartedAt = nanos(s.StartedAt)
	}
	if c.State == runtime.ContainerExited {
		c.FinishedAt, c.ExitCode, c.Reason = nanos(s.FinishedAt), s.ExitCode, logs.Text(s.Reason, maxEventBytes)
		if s.Message != "" && s.StartedAt == 0 && rec.Expanded[c.Name] {
			s = proto.CloneOf(s)
			s.Message = withheld
		}
		c.Message = terminationMessage(s)
	}
	if given, ok := rec.Actuated[c.Name]; ok && given.ID == s.Id {
		c.Resources = &given.Resources // exact, unlike the rounded values of the runtime
	} else {
		c.Resources = reported(s.GetResources().GetLinux())
	}
	return c
}

// userOf returns the user of a container; nil if the runtime does not report it.
func userOf(u *runtimeapi.ContainerUser) *v1.ContainerUser {
	linux := u.GetLinux()
	if linux == nil {
		return nil
	}
	return &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: linux.Uid, GID: linux.Gid, SupplementalGroups: linux.SupplementalGroups}}
}
