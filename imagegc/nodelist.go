package imagegc

import (
	"cmp"
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// fresh is how long a list of images is good enough for the node's status (ig-18).
const fresh = 30 * time.Second

// maxNames is how many names of an image the node's status has (ns-15).
const maxNames = 5

// NodeImages returns the images for the status of the node, the largest first, no
// more than limit of them (negative: all), each with its digests, then its tags
// (ig-18, ns-15). They are listed anew if they were not in the last 30 seconds. If
// that fails there are none.
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

// recent returns the images as they were listed of late, the largest first.
func (m *Manager) recent(ctx context.Context) []runtime.Image {
	now := time.Now()
	m.mu.Lock()
	images, listed := m.images, m.listed
	m.mu.Unlock()
	if !listed.IsZero() && now.Sub(listed) < fresh && !now.Before(listed) {
		return images
	}
	images, err := m.cfg.Store.Images(ctx)
	if err != nil {
		m.cfg.Logger.Warn("images cannot be listed for the node's status", "err", err)
		return nil
	}
	return m.note(images, now)
}

// note keeps a list of images.
func (m *Manager) note(images []runtime.Image, now time.Time) []runtime.Image {
	images = slices.Clone(images)
	slices.SortFunc(images, func(a, b runtime.Image) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(keyOf(a), keyOf(b)))
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.images, m.listed, m.names = images, now, nil
	return images
}

// PodBytes returns how much the images of a pod take, as the runtime tells their
// sizes, so that those which other pods use as well, and layers that images share,
// count in full. It goes by the list that NodeImages has; an image that is not there
// takes nothing.
func (m *Manager) PodBytes(ctx context.Context, pod *v1.Pod) (bytes int64) {
	_ = m.recent(ctx) // what it cannot list is as it was
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
