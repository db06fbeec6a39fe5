package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

func (s Schedule) hasCollections() bool {
	return slices.ContainsFunc(s, func(step Step) bool { return step.Do == Collect })
}

// newImages returns the imagegc.Manager of an agent; nil if no step removes images.
// It does not get the desired pods, so that only the pin protects the images of a pod
// that is being started.
func (r *run) newImages(a *Agent, rt runtime.Runtime, table *podworker.Table) (*imagegc.Manager, error) {
	if !r.cfg.Schedule.hasCollections() {
		return nil, nil
	}
	store, ok := compose.As[runtime.ImageStore](rt)
	if !ok {
		store = memoryImages{r}
	}
	m, err := imagegc.New(imagegc.Config{
		Store: imageStore{store, a}, Pods: func() ([]*v1.Pod, bool) { return nil, table.Synced() },
		Policy: imagegc.Policy{HighPercent: new(int32(100)), MinAge: -1, MaxAge: 2 * time.Minute},
	})
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return m, nil
}

// collectImages removes the images that are not in use at each signal.
func (n *Node) collectImages(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.cfg.collect:
			_, _ = n.cfg.images.DeleteUnused(ctx) // an error is a fault; the next collection succeeds
		}
	}
}

// An imageStore passes the calls of an agent's imagegc.Manager through Agent.Call.
type imageStore struct {
	next  runtime.ImageStore
	agent *Agent
}

// Unwrap hides the other methods of the store: a call that is not gated would have effects after
// the agent was killed.
func (imageStore) Unwrap() any { return nil }

// Images implements runtime.ImageStore.
func (s imageStore) Images(ctx context.Context) (out []runtime.Image, err error) {
	err = s.agent.Call(ctx, Call{Method: "Images"}, func() error {
		out, err = s.next.Images(ctx)
		return err
	})
	return out, err
}

// ImageUses implements runtime.ImageStore.
func (s imageStore) ImageUses(ctx context.Context) (out []runtime.ImageUse, err error) {
	err = s.agent.Call(ctx, Call{Method: "ImageUses"}, func() error {
		out, err = s.next.ImageUses(ctx)
		return err
	})
	return out, err
}

// RemoveImage implements runtime.ImageStore.
func (s imageStore) RemoveImage(ctx context.Context, image runtime.Image) error {
	return s.agent.Call(ctx, Call{Method: "RemoveImage", ID: image.ID}, func() error {
		for _, name := range image.Tags {
			if !s.agent.run.note(Entry{Agent: s.agent.agent, Kind: ImageRemoved, Image: name}) {
				return context.Canceled
			}
		}
		return s.next.RemoveImage(ctx, image)
	})
}

// memoryImages is the image store of a node whose machine does not manage images: it
// has the images of the pods that were synced.
type memoryImages struct{ run *run }

// Images implements runtime.ImageStore.
func (m memoryImages) Images(context.Context) (out []runtime.Image, err error) {
	m.run.mu.Lock()
	defer m.run.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.run.presentImages)) {
		out = append(out, runtime.Image{ID: name, Tags: []string{name}, Size: 1})
	}
	return out, nil
}

// ImageUses implements runtime.ImageStore.
func (m memoryImages) ImageUses(context.Context) (out []runtime.ImageUse, err error) {
	m.run.mu.Lock()
	defer m.run.mu.Unlock()
	for _, p := range m.run.truth.pods {
		for _, c := range p.instances {
			out = append(out, runtime.ImageUse{Name: c.Image, Pod: p.name, Container: c.Name})
		}
	}
	return out, nil
}

// RemoveImage implements runtime.ImageStore.
func (m memoryImages) RemoveImage(_ context.Context, image runtime.Image) error {
	m.run.mu.Lock()
	defer m.run.mu.Unlock()
	delete(m.run.presentImages, image.ID)
	return nil
}

// addImages adds the images of a pod to memoryImages when its SyncPod begins.
func (r *run) addImages(kind EntryKind, pod *v1.Pod) {
	if kind != SyncPodCalled {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, image := range imagegc.PodImages(pod) {
		r.presentImages[image] = true
	}
}

// An observedRuntime calls onSynced after each SyncPod.
type observedRuntime struct {
	runtime.Runtime
	onSynced func(uid types.UID)
}

func (r observedRuntime) Unwrap() any { return r.Runtime }

func (r observedRuntime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	defer r.onSynced(req.Pod.UID)
	return r.Runtime.SyncPod(ctx, req)
}
