package fakecri

import (
	"context"
	"iter"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// ListPodSandbox returns the sandboxes that match the filter, oldest first. The ID may be a
// unique prefix; labels must be equal.
func (r *Runtime) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	return callAged(ctx, r, fake.Call{Method: "ListPodSandbox"}, func(ctx context.Context, age time.Duration) ([]*runtimeapi.PodSandbox, error) {
		if err := r.begin(ctx); err != nil {
			return nil, err
		}
		defer r.mu.Unlock()
		id := r.sandboxes.whole(filter.GetId())
		match := func(p *runtimeapi.PodSandbox) bool {
			return (id == "" || p.Id == id) &&
				(filter.GetState() == nil || p.State == filter.GetState().GetState()) &&
				selects(filter.GetLabelSelector(), p.Labels)
		}
		if age > 0 {
			return aged(&r.past.sandboxes, age, r.sandboxes.all(), (*sandbox).shown, match), nil
		}
		return matching(r.sandboxesOfLocked(id, filter.GetLabelSelector()), (*sandbox).shown, match), nil
	})
}

// ListContainers returns the containers that match the filter, like ListPodSandbox.
func (r *Runtime) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	return callAged(ctx, r, fake.Call{Method: "ListContainers"}, func(ctx context.Context, age time.Duration) ([]*runtimeapi.Container, error) {
		if err := r.begin(ctx); err != nil {
			return nil, err
		}
		defer r.mu.Unlock()
		id, sandboxID := r.containers.whole(filter.GetId()), r.sandboxes.whole(filter.GetPodSandboxId())
		match := func(c *runtimeapi.Container) bool {
			return (id == "" || c.Id == id) &&
				(sandboxID == "" || c.PodSandboxId == sandboxID) &&
				(filter.GetState() == nil || c.State == filter.GetState().GetState()) &&
				selects(filter.GetLabelSelector(), c.Labels)
		}
		if age > 0 {
			return aged(&r.past.containers, age, r.containers.all(), (*container).shown, match), nil
		}
		return matching(r.containersOfLocked(id, sandboxID, filter.GetLabelSelector()), (*container).shown, match), nil
	})
}

func (s *sandbox) shown() *runtimeapi.PodSandbox  { return s.item }
func (c *container) shown() *runtimeapi.Container { return c.item }

func matching[O, T any](objects iter.Seq[O], shown func(O) T, match func(T) bool) []T {
	var list []T
	for o := range objects {
		if item := shown(o); match(item) {
			list = append(list, item)
		}
	}
	return list
}

// sandboxesOfLocked yields the sandboxes that can match a filter, oldest first: all, or
// fewer if an index can be used. The ID must be complete or empty.
func (r *Runtime) sandboxesOfLocked(id string, labels map[string]string) iter.Seq[*sandbox] {
	if id != "" {
		return r.sandboxes.only(id)
	}
	uid := labels[labelPodUID]
	if uid == "" || r.mislabelled > 0 {
		return r.sandboxes.all()
	}
	return r.sandboxesOfPodLocked(uid)
}

// containersOfLocked is sandboxesOfLocked for containers.
func (r *Runtime) containersOfLocked(id, sandboxID string, labels map[string]string) iter.Seq[*container] {
	if id != "" {
		return r.containers.only(id)
	}
	if sandboxID == "" && (labels[labelPodUID] == "" || r.mislabelled > 0) {
		return r.containers.all()
	}
	return func(yield func(*container) bool) {
		for s := range r.sandboxesOfLocked(sandboxID, labels) {
			for _, c := range s.containers {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// selects reports whether labels contain all pairs of the selector.
func selects(want, labels map[string]string) bool {
	for k, v := range want {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}
