package sim

import (
	"fmt"
	"slices"

	"github.com/kubeparts/kubeparts/imagegc"
)

// imageInvariants are the invariants of the removal of images.
func imageInvariants() []Invariant {
	return []Invariant{{
		Name:        "synced-images-kept",
		Description: "no image is removed while a pod with this image in its spec is being synced",
		newCheck:    syncedImagesKept,
	}}
}

func syncedImagesKept(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != ImageRemoved {
			return ""
		}
		for _, p := range t.pods {
			if p.syncing != nil && slices.Contains(imagegc.PodImages(p.syncing), e.Image) {
				return fmt.Sprintf("%s was removed during SyncPod of pod %s", e.Image, p.uid)
			}
		}
		return ""
	}
}
