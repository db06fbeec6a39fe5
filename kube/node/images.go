package node

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
)

const (
	defaultMaxImages = 50
	maxNames         = 5 // per image, to bound the size of the object (rule ns-15)
)

// An Image is an image of the node.
type Image struct {
	ID      string
	Digests []string // "registry/name@sha256:…"
	Tags    []string // "registry/name:tag"
	Size    int64    // bytes
}

// reportImages returns the images of the node status, the largest first (rule ns-15).
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
	var out []v1.ContainerImage
	for _, i := range sorted {
		names := slices.Concat(i.Digests, i.Tags)
		// The API server rejects an image without names.
		if len(names) == 0 && i.ID != "" {
			names = []string{i.ID}
		}
		out = append(out, v1.ContainerImage{Names: names[:min(len(names), maxNames)], SizeBytes: i.Size})
	}
	return out
}
