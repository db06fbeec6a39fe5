package imagegc

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A guard keeps images from being removed while somebody is about to use them, and
// those who are about to use one from finding it while it is being removed (F-34).
type guard struct {
	mu       sync.Mutex           // guards the fields below
	held     map[string]int       // by spelling: by how many
	used     map[string]time.Time // by spelling: when the last of them let go
	by       map[string]string    // by spelling: the pod that held it first, since it was last listed
	removing map[string]chan struct{}
}

func newGuard() guard {
	return guard{held: map[string]int{}, used: map[string]time.Time{}, by: map[string]string{}, removing: map[string]chan struct{}{}}
}

// Hold keeps these images, as a pod names them, from being removed until release is
// called, whether they are there already or not: hold them before you look whether
// they are, and release them when the containers have been made. If one of them is
// being removed now, Hold waits until it is gone. When ctx ends first, it returns
// ctx's error, and holds nothing.
//
// It may be called from any goroutine, and several times for one image.
func (m *Manager) Hold(ctx context.Context, images ...string) (release func(), err error) {
	names := make([]string, len(images))
	for i, image := range images {
		names[i] = spelled(image)
	}
	g := &m.guard
	for {
		busy := g.take(names)
		if busy == nil {
			return sync.OnceFunc(func() { g.letGo(names) }), nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// HoldPod is Hold of all images of a pod.
func (m *Manager) HoldPod(ctx context.Context, pod *v1.Pod) (release func(), err error) {
	images := PodImages(pod)
	release, err = m.Hold(ctx, images...)
	if err == nil {
		m.guard.name(images, pod.Namespace+"/"+pod.Name)
	}
	return release, err
}

// PodImages returns the images that a pod's spec names: of its containers of every
// kind, and of its volumes.
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

// take holds all of the names, or none and returns what to wait for.
func (g *guard) take(names []string) (busy <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		if gone, ok := g.removing[name]; ok {
			return gone
		}
	}
	for _, name := range names {
		g.held[name]++
	}
	return nil
}

func (g *guard) letGo(names []string) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		if g.held[name]--; g.held[name] <= 0 {
			delete(g.held, name)
		}
		g.used[name] = now
	}
}

// begin marks an image as being removed, unless somebody holds it, or has let go of
// it since the images were listed: there may be a container by now. The marks end
// with the func that is returned.
func (g *guard) begin(names []string, listed time.Time) (end func(), why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		if g.held[name] > 0 {
			return nil, "a pod that is being started needs it"
		}
		if used, ok := g.used[name]; ok && !used.Before(listed) {
			return nil, "a pod was started meanwhile that may use it"
		}
	}
	gone := make(chan struct{})
	for _, name := range names {
		g.removing[name] = gone
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, name := range names {
			delete(g.removing, name)
		}
		close(gone)
	}, ""
}

// forget drops what is known of uses before then, which a list of that time shows.
func (g *guard) forget(before time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.used, func(_ string, at time.Time) bool { return at.Before(before) })
	maps.DeleteFunc(g.by, func(name, _ string) bool {
		_, used := g.used[name]
		return g.held[name] == 0 && !used
	})
}

// name notes for whom images are held.
func (g *guard) name(images []string, who string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, image := range images {
		if name := spelled(image); g.by[name] == "" {
			g.by[name] = who
		}
	}
}

// pulledBy returns who held an image of these names first; "" if nobody did.
func (g *guard) pulledBy(names []string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		if who := g.by[name]; who != "" {
			return who
		}
	}
	return ""
}

// letGoAt returns when an image of these names was last let go, the zero time if it
// was not since the images were last listed.
func (g *guard) letGoAt(names []string) (at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		at = later(at, g.used[name])
	}
	return at
}

// names returns what is held at present.
func (g *guard) names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.held))
}
