package cloud

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Pods implements [runtime.Lister] with one call of the cloud.
func (r *Runtime) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	all, err := r.machines(ctx)
	if err != nil {
		return nil, fmt.Errorf("cloud: list pods: %w", err)
	}
	pods := make([]*runtime.Pod, 0, len(all))
	for uid, machines := range all {
		pods = append(pods, statusOf(uid, machines).Pod())
	}
	slices.SortFunc(pods, func(a, b *runtime.Pod) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.UID, b.UID))
	})
	return pods, nil
}

// PodStatus implements [runtime.Lister].
func (r *Runtime) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	began := time.Now()
	machines, err := r.machinesOf(ctx, uid)
	if err != nil {
		return nil, fmt.Errorf("cloud: inspect pod %s: %w", uid, err)
	}
	status := statusOf(uid, machines)
	status.ObservedAt = began
	return status, nil
}

// Watch implements [runtime.Watcher] if the cloud is an Eventer.
func (r *Runtime) Watch(ctx context.Context, changed func(types.UID)) error {
	eventer, ok := r.cloud.(Eventer)
	if !ok {
		return fmt.Errorf("cloud: watch: %w", runtime.ErrUnsupported)
	}
	return eventer.Events(ctx, func(tags map[string]string) {
		if tags[tagNode] == r.node {
			changed(types.UID(tags[tagUID]))
		}
	})
}

// machines returns the machines of the node by pod, the newest one first.
func (r *Runtime) machines(ctx context.Context) (map[types.UID][]Machine, error) {
	list, err := r.cloud.ListMachines(ctx, map[string]string{tagNode: r.node})
	pods := map[types.UID][]Machine{}
	for _, m := range newestFirst(list) {
		uid := types.UID(m.Tags[tagUID])
		pods[uid] = append(pods[uid], m)
	}
	return pods, err
}

// machinesOf returns the machines of a pod, the newest one first.
func (r *Runtime) machinesOf(ctx context.Context, uid types.UID) ([]Machine, error) {
	list, err := r.cloud.ListMachines(ctx, map[string]string{tagNode: r.node, tagUID: string(uid)})
	return newestFirst(list), err
}

func newestFirst(machines []Machine) []Machine {
	slices.SortFunc(machines, func(a, b Machine) int {
		return cmp.Or(cmp.Compare(number(b.Tags, tagAttempt), number(a.Tags, tagAttempt)), b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return machines
}

// statusOf converts machines to sandboxes, and processes to instances of containers.
func statusOf(uid types.UID, machines []Machine) *runtime.PodStatus {
	s := &runtime.PodStatus{UID: uid}
	for i, m := range machines {
		box := runtime.SandboxStatus{
			ID: m.ID, State: runtime.SandboxReady, Attempt: uint32(number(m.Tags, tagAttempt)), CreatedAt: m.Created,
			HostNetwork: m.Tags[tagHostNet] == "true",
		}
		switch m.State {
		case Running:
			box.NetworkReported = true
			if !box.HostNetwork {
				box.IPs = []string{m.IP}
			}
		case Ended:
			box.State = runtime.SandboxNotReady
		}
		if i == 0 {
			s.Name, s.Namespace, s.Source = m.Tags[tagName], m.Tags[tagNamespace], m.Tags[tagSource]
			s.IPs = slices.Clone(box.IPs)
		}
		s.Sandboxes = append(s.Sandboxes, box)
		for _, p := range m.Processes {
			s.Containers = append(s.Containers, containerOf(&m, &p))
		}
	}
	slices.SortFunc(s.Containers, func(a, b runtime.ContainerStatus) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.RestartCount, a.RestartCount), cmp.Compare(a.ID, b.ID))
	})
	return s
}

func containerOf(m *Machine, p *Process) runtime.ContainerStatus {
	c := runtime.ContainerStatus{
		ID: scheme + p.ID, SandboxID: m.ID, Name: p.Tags[tagContainer], RestartCount: int32(number(p.Tags, tagRestarts)), Hash: number(p.Tags, tagHash),
		Image: p.Image, CreatedAt: p.Created, StartedAt: p.Started,
	}
	switch p.State {
	case Starting:
		c.State = runtime.ContainerCreated
	case Running:
		c.State = runtime.ContainerRunning
	case Ended:
		c.State, c.FinishedAt, c.ExitCode, c.Message = runtime.ContainerExited, p.Ended, p.ExitCode, p.Message
		c.Reason = "Completed"
		if p.ExitCode != 0 {
			c.Reason = "Error"
		}
	}
	return c
}

// scheme is the prefix that makes the ID of a process a container ID.
const scheme = "cloud://"

func bare(containerID string) string { return strings.TrimPrefix(containerID, scheme) }
