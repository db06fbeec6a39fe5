package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// Pods implements [runtime.Lister] with two list calls.
func (r *Runtime) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	sandboxes, containers, err := r.list(ctx, "")
	if err != nil {
		return nil, err
	}
	return r.podsOf(sandboxes, containers), nil
}

// podsOf returns the pods of the sandboxes and containers, newest first.
func (r *Runtime) podsOf(sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container) []*runtime.Pod {
	byUID := map[types.UID]*runtime.Pod{}
	pod := func(uid, name, namespace string, created int64) *runtime.Pod {
		p, ok := byUID[types.UID(uid)]
		if !ok {
			p = &runtime.Pod{UID: types.UID(uid), Name: name, Namespace: namespace}
			byUID[p.UID] = p
		}
		if at := nanos(created); p.CreatedAt.IsZero() || at.Before(p.CreatedAt) {
			p.CreatedAt = at
		}
		return p
	}
	for _, s := range sandboxes {
		p := pod(s.Metadata.Uid, s.Metadata.Name, s.Metadata.Namespace, s.CreatedAt)
		if p.Source == "" {
			p.Source = s.Annotations[runtime.ConfigSourceAnnotation] // the same in all sandboxes of a pod
		}
		p.Sandboxes = append(p.Sandboxes, runtime.Sandbox{
			ID: s.Id, State: sandboxState(s.State), Attempt: s.Metadata.Attempt, CreatedAt: nanos(s.CreatedAt),
		})
	}
	for _, c := range containers {
		p := pod(c.Labels[podconfig.LabelPodUID], c.Labels[podconfig.LabelPodName], c.Labels[podconfig.LabelPodNamespace], c.CreatedAt)
		p.Containers = append(p.Containers, runtime.Container{
			ID: r.id(c.Id), Name: c.Metadata.Name, SandboxID: c.PodSandboxId, State: containerState(c.State),
			Attempt: c.Metadata.Attempt, CreatedAt: nanos(c.CreatedAt),
		})
	}
	pods := make([]*runtime.Pod, 0, len(byUID))
	for _, p := range byUID {
		slices.SortFunc(p.Sandboxes, func(a, b runtime.Sandbox) int {
			return newestSandbox(a.Attempt, b.Attempt, a.CreatedAt, b.CreatedAt, a.ID, b.ID)
		})
		newestFirst(p.Containers, func(c *runtime.Container) instanceOrder {
			return instanceOrder{c.Name, int64(c.Attempt), c.CreatedAt, c.ID}
		})
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *runtime.Pod) int {
		return newest(a.CreatedAt, b.CreatedAt, string(a.UID), string(b.UID))
	})
	return pods
}

// list returns the sandboxes and containers of one pod, or of all pods of this node if uid
// is empty.
func (r *Runtime) list(ctx context.Context, uid types.UID) ([]*runtimeapi.PodSandbox, []*runtimeapi.Container, error) {
	sandboxes, containers, err := r.listAll(ctx, uid)
	if err == nil && uid == "" {
		sandboxes, containers = r.withoutForeign(sandboxes, containers)
	}
	return sandboxes, containers, err
}

// listAll is list, with the pods of other nodes.
//
// Objects without metadata or without Kubernetes' labels were not created by an agent and
// are skipped. An object with the labels but without an ID is an error: it cannot be
// stopped, and without it the pod would appear to have been removed.
func (r *Runtime) listAll(ctx context.Context, uid types.UID) ([]*runtimeapi.PodSandbox, []*runtimeapi.Container, error) {
	ctx = r.quiet(ctx)
	var sandboxFilter runtimeapi.PodSandboxFilter
	var containerFilter runtimeapi.ContainerFilter
	if uid != "" {
		selector := map[string]string{podconfig.LabelPodUID: string(uid)}
		sandboxFilter.LabelSelector, containerFilter.LabelSelector = selector, selector
	}
	sandboxes, err := r.cfg.Runtime.ListPodSandbox(ctx, &sandboxFilter)
	if err != nil {
		return nil, nil, fmt.Errorf("cri: list sandboxes: %w", err)
	}
	containers, err := r.cfg.Runtime.ListContainers(ctx, &containerFilter)
	if err != nil {
		return nil, nil, fmt.Errorf("cri: list containers: %w", err)
	}
	listed := map[string]bool{} // IDs; duplicates are skipped
	sandboxes = slices.DeleteFunc(sandboxes, func(s *runtimeapi.PodSandbox) bool {
		of := s.GetMetadata().GetUid()
		if of == "" || s.GetLabels()[podconfig.LabelPodUID] != of || uid != "" && of != string(uid) || listed[s.Id] {
			return true
		}
		listed[s.Id] = true
		return false
	})
	if listed[""] {
		return nil, nil, errors.New("cri: list sandboxes: sandbox or container without ID")
	}
	clear(listed)
	containers = slices.DeleteFunc(containers, func(c *runtimeapi.Container) bool {
		of := c.GetLabels()[podconfig.LabelPodUID]
		if c.GetMetadata() == nil || of == "" || uid != "" && of != string(uid) || listed[c.Id] {
			return true
		}
		listed[c.Id] = true
		return false
	})
	if listed[""] {
		return nil, nil, errors.New("cri: list containers: sandbox or container without ID")
	}
	return sandboxes, containers, nil
}

// newest compares by creation time, newest first, then by ID.
func newest(a, b time.Time, aID, bID string) int {
	return cmp.Or(b.Compare(a), cmp.Compare(aID, bID))
}

// An instanceOrder contains the sort keys of an instance.
type instanceOrder struct {
	name    string
	attempt int64
	created time.Time
	id      string
}

// newestFirst sorts instances as newest does, and those of one container by attempt: if
// the clock was set back, the latest instance has an earlier creation time than
// terminated ones.
func newestFirst[T any](list []T, of func(*T) instanceOrder) {
	slices.SortFunc(list, func(a, b T) int {
		x, y := of(&a), of(&b)
		return newest(x.created, y.created, x.id, y.id)
	})
	for i := range list {
		for j := i + 1; j < len(list); j++ {
			if x, y := of(&list[i]), of(&list[j]); x.name == y.name && x.attempt < y.attempt {
				list[i], list[j] = list[j], list[i]
			}
		}
	}
}

// newestSandbox compares by attempt, highest first, then as newest.
func newestSandbox(aAttempt, bAttempt uint32, a, b time.Time, aID, bID string) int {
	return cmp.Or(cmp.Compare(bAttempt, aAttempt), newest(a, b, aID, bID))
}

// nanos converts a CRI timestamp to a time. 0 is the zero time.
func nanos(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

func sandboxState(s runtimeapi.PodSandboxState) runtime.SandboxState {
	switch s {
	case runtimeapi.PodSandboxState_SANDBOX_READY:
		return runtime.SandboxReady
	case runtimeapi.PodSandboxState_SANDBOX_NOTREADY:
		return runtime.SandboxNotReady
	default:
		return runtime.SandboxUnknown
	}
}

func containerState(s runtimeapi.ContainerState) runtime.ContainerState {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return runtime.ContainerCreated
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return runtime.ContainerRunning
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return runtime.ContainerExited
	default:
		return runtime.ContainerUnknown
	}
}
