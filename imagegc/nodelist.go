package imagegc

import (
	"cmp"
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// maxListAge is how long a list of images may be used for the node status.
const maxListAge = 30 * time.Second

// maxNames is the maximum number of names of an image in the node status (rule ns-15).
const maxNames = 5

// NodeImages returns the images for the node status, the largest first, each with its digests,
// then its tags. It returns at most limit images; a negative limit means all. The images are
// listed if that has not happened in the last 30 seconds; if it fails, NodeImages returns
// none.
func (m *Manager) NodeImages(ctx context.Context, limit int) []v1.ContainerImage {
	images := m.recent(ctx)
	list := make([]v1.ContainerImage, 0, len(images))
	for _, i := range images {
		names := slices.Concat(i.Digests, i.Tags)
		list = append(list, v1.ContainerImage{Names: names[:min(len(names), maxNames)], SizeBytes: int64(min(i.Size, 1<<63-1))})
	}
	if limit >= 0 {
		list = list[:min(limit, len(list))]
	}
	return list
}

// recent returns the images as listed within maxListAge, the largest first.
func (m *Manager) recent(ctx context.Context) []runtime.Image {
	now := time.Now()
	m.mu.Lock()
	images, listed := m.images, m.listed
	m.mu.Unlock()
	if !listed.IsZero() && now.Sub(listed) < maxListAge && !now.Before(listed) {
		return images
	}
	images, err := m.cfg.Store.Images(ctx)
	if err != nil {
		m.cfg.Logger.Warn("Failed to list images for the node status", "err", err)
		return nil
	}
	return m.setImages(images, now)
}

// setImages stores a list of images and returns it sorted.
func (m *Manager) setImages(images []runtime.Image, now time.Time) []runtime.Image {
	images = slices.Clone(images)
	slices.SortFunc(images, func(a, b runtime.Image) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(keyOf(a), keyOf(b)))
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.images, m.listed, m.names = images, now, nil
	return images
}

// PodBytes returns the total size of the images of a pod in bytes, as the runtime reports
// them: images used by other pods and shared layers count in full. It uses the list of
// NodeImages; an image that is not present counts as zero.
func (m *Manager) PodBytes(ctx context.Context, pod *v1.Pod) (bytes int64) {
	_ = m.recent(ctx) // if it fails, the last list is used
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names == nil {
		m.names = newIndex(recordsOf(m.images))
	}
	counted := map[string]bool{}
	for _, name := range PodImages(pod) {
		for _, i := range m.names.find(name) {
			if image := &m.images[i]; !counted[image.ID] {
				counted[image.ID] = true
				bytes += int64(min(image.Size, 1<<53))
			}
		}
	}
	return bytes
}

func recordsOf(images []runtime.Image) []Record {
	records := make([]Record, len(images))
	for i := range images {
		records[i].Image = images[i]
	}
	return records
}
