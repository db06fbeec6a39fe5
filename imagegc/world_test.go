package imagegc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/runtime"
)

// A world is a disk with images, and containers that use them. Shared layers count
// once.
type world struct {
	mu       sync.Mutex
	capacity uint64
	others   uint64 // bytes that are not of images
	images   []stored
	uses     []runtime.ImageUse
	pods     []*v1.Pod
	broken   map[string]bool // images that cannot be removed
	fail     map[string]error
	removed  []string
	events   []string
	onRemove func(id string) // called without the lock
}

type stored struct {
	image  runtime.Image
	layers map[string]uint64
}

func newWorld(capacity uint64) *world {
	return &world{capacity: capacity, broken: map[string]bool{}, fail: map[string]error{}}
}

// pull adds an image to the disk; each of the layers "base:5 app:5" uses its size
// once, however many images share it.
func (w *world) pull(name string, layers map[string]uint64) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var size uint64
	for _, s := range layers {
		size += s
	}
	id := "sha256:" + name
	w.images = append(w.images, stored{runtime.Image{ID: id, Tags: []string{"docker.io/library/" + name}, Size: size}, layers})
	return id
}

func (w *world) of(name string, change func(*runtime.Image)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.images {
		if w.images[i].image.ID == "sha256:"+name {
			change(&w.images[i].image)
		}
	}
}

func (w *world) use(pod, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uses = append(w.uses, runtime.ImageUse{ID: "sha256:" + name, Namespace: "default", Pod: pod, Container: "c"})
}

func (w *world) unuse(pod string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uses = slices.DeleteFunc(w.uses, func(u runtime.ImageUse) bool { return u.Pod == pod })
}

func (w *world) Images(context.Context) ([]runtime.Image, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []runtime.Image
	for _, s := range w.images {
		list = append(list, s.image)
	}
	return list, w.fail["images"]
}

func (w *world) ImageUses(context.Context) ([]runtime.ImageUse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.uses), w.fail["uses"]
}

func (w *world) RemoveImage(_ context.Context, image runtime.Image) error {
	w.mu.Lock()
	hook := w.onRemove
	w.mu.Unlock()
	if hook != nil {
		hook(image.ID)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken[image.ID] {
		return errors.New("device or resource busy")
	}
	w.images = slices.DeleteFunc(w.images, func(s stored) bool {
		return s.image.ID == image.ID && s.image.RuntimeHandler == image.RuntimeHandler
	})
	w.removed = append(w.removed, image.ID)
	return nil
}

func (w *world) space(context.Context) (imagegc.Space, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	used, layers := w.others, map[string]bool{}
	for _, s := range w.images {
		for name, size := range s.layers {
			if !layers[name] {
				layers[name] = true
				used += size
			}
		}
	}
	return imagegc.Space{Capacity: w.capacity, Available: w.capacity - min(used, w.capacity)}, w.fail["space"]
}

// emitted returns the events so far.
func (w *world) emitted() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

func (w *world) has(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.images, func(s stored) bool { return s.image.ID == "sha256:"+name })
}

// config configures a manager of this world.
func (w *world) config() imagegc.Config {
	return imagegc.Config{
		Store: w, Space: w.space,
		Pods: func() ([]*v1.Pod, bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(w.pods), true
		},
		Node: v1.ObjectReference{Kind: "Node", Name: "n"},
		Record: func(e runtime.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, fmt.Sprintf("%s %s %s: %s", e.Object.Kind, e.Type, e.Reason, e.Message))
		},
	}
}

func podWith(name string, images ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	for i, image := range images {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: fmt.Sprint("c", i), Image: image})
	}
	return p
}

var t0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// record returns the record of an image that was detected and used so many hours ago;
// used < 0: never.
func record(name string, seen, used float64, size uint64) imagegc.Record {
	r := imagegc.Record{
		Image:         runtime.Image{ID: "sha256:" + name, Tags: []string{"docker.io/library/" + name}, Size: size},
		FirstDetected: t0.Add(-time.Duration(seen * float64(time.Hour))),
	}
	if used >= 0 {
		r.LastUsed = t0.Add(-time.Duration(used * float64(time.Hour)))
	}
	return r
}
