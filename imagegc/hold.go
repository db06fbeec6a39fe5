package imagegc

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// holds excludes the removal of an image and its use by a pod that is being started from each
// other.
type holds struct {
	mu       sync.Mutex           // guards the fields below
	count    map[string]int       // by normalized name: number of holds
	released map[string]time.Time // by normalized name: when the last hold was released
	firstPod map[string]string    // by normalized name: the first pod that held it since it was last listed
	removing map[string]chan struct{}
}

func newHolds() holds {
	return holds{count: map[string]int{}, released: map[string]time.Time{}, firstPod: map[string]string{}, removing: map[string]chan struct{}{}}
}

// AcquireImages prevents the removal of the images of a pod until release is called, whether they
// are present or not. A caller that starts pods must call it before it checks whether the
// images are present, and release it after the containers have been created. If one of them
// is being removed, AcquireImages blocks until it has been removed; the removal of others does not
// begin meanwhile. If ctx is done first, it holds nothing and returns ctx.Err(). Images may be held
// several times.
func (m *Manager) AcquireImages(ctx context.Context, pod *v1.Pod) (release func(), err error) {
	images := PodImages(pod)
	release, err = m.hold(ctx, images...)
	if err == nil {
		m.holds.setPod(images, pod.Namespace+"/"+pod.Name)
	}
	return release, err
}

// hold is AcquireImages for images in any form of their names.
func (m *Manager) hold(ctx context.Context, images ...string) (release func(), err error) {
	names := make([]string, len(images))
	for i, image := range images {
		names[i] = normalize(image)
	}
	h := &m.holds
	release = sync.OnceFunc(func() { h.release(names) })
	for _, removed := range h.acquire(names) {
		select {
		case <-removed:
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
	return release, nil
}

// PodImages returns the images in a pod's spec: of its containers of every kind, and of its
// volumes.
func PodImages(pod *v1.Pod) []string {
	var images []string
	add := func(image string) {
		if image != "" && !slices.Contains(images, image) {
			images = append(images, image)
		}
	}
	for i := range pod.Spec.InitContainers {
		add(pod.Spec.InitContainers[i].Image)
	}
	for i := range pod.Spec.Containers {
		add(pod.Spec.Containers[i].Image)
	}
	for i := range pod.Spec.EphemeralContainers {
		add(pod.Spec.EphemeralContainers[i].Image)
	}
	for i := range pod.Spec.Volumes {
		if image := pod.Spec.Volumes[i].Image; image != nil {
			add(image.Reference)
		}
	}
	return images
}

// acquire holds all names. removals has a channel for each that is being removed, which is
// closed after its removal.
func (h *holds) acquire(names []string) (removals []<-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		h.count[name]++
		if done, ok := h.removing[name]; ok {
			removals = append(removals, done)
		}
	}
	return removals
}

func (h *holds) release(names []string) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		if h.count[name]--; h.count[name] <= 0 {
			delete(h.count, name)
		}
		h.released[name] = now
	}
}

// beginRemoval marks an image as being removed until end is called. If the image is held, or
// was released since the images were listed and may have a container now, end is nil and
// reason is set.
func (h *holds) beginRemoval(names []string, listed time.Time) (end func(), reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		if h.count[name] > 0 {
			return nil, "used by a pod that is being started"
		}
		if at, ok := h.released[name]; ok && !at.Before(listed) {
			return nil, "may be used by a pod that was started since the images were listed"
		}
	}
	done := make(chan struct{})
	for _, name := range names {
		h.removing[name] = done
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, name := range names {
			delete(h.removing, name)
		}
		close(done)
	}, ""
}

// forget drops the holds that were released before the given time; a list of images of that
// time includes their containers.
func (h *holds) forget(before time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.released, func(_ string, at time.Time) bool { return at.Before(before) })
	maps.DeleteFunc(h.firstPod, func(name, _ string) bool {
		_, released := h.released[name]
		return h.count[name] == 0 && !released
	})
}

// setPod stores the pod that images are held for, unless there was an earlier one.
func (h *holds) setPod(images []string, pod string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, image := range images {
		if name := normalize(image); h.firstPod[name] == "" {
			h.firstPod[name] = pod
		}
	}
}

// pulledBy returns the pod that first held an image with one of the names, empty if unknown.
func (h *holds) pulledBy(names []string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		if pod := h.firstPod[name]; pod != "" {
			return pod
		}
	}
	return ""
}

// releasedAt returns when a hold of one of the names was last released, the zero time if none
// was since the images were last listed.
func (h *holds) releasedAt(names []string) (at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		at = later(at, h.released[name])
	}
	return at
}

// names returns the names that are held.
func (h *holds) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.count))
}
