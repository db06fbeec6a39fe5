package node

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
)

const (
	defaultMaxImages = 50
	maxNames         = 5 // per image, so that the object stays small (ns-15)
)

// An Image is one that a node has.
type Image struct {
	ID      string
	Digests []string // "registry/name@sha256:…"
	Tags    []string // "registry/name:tag"
	Size    int64    // bytes
}

// reportImages returns what the status says of images: the biggest first (ns-15).
func reportImages(images []Image, most int) []v1.ContainerImage {
	if most == 0 {
		most = defaultMaxImages
	}
	sorted := slices.Clone(images)
	slices.SortFunc(sorted, func(a, b Image) int {
		return cmp.Or(-cmp.Compare(a.Size, b.Size), cmp.Compare(a.ID, b.ID))
	})
	if most > 0 && len(sorted) > most {
		sorted = sorted[:most]
	}
	out := make([]v1.ContainerImage, 0, len(sorted))
	for _, i := range sorted {
		names := slices.Concat(i.Digests, i.Tags)
		// A status without names would be refused.
		if len(names) == 0 && i.ID != "" {
			names = []string{i.ID}
		}
		out = append(out, v1.ContainerImage{Names: names[:min(len(names), maxNames)], SizeBytes: i.Size})
	}
	return out
}
