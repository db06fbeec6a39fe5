package sim

import (
	"fmt"
	"slices"

	"github.com/kubeparts/kubeparts/imagegc"
)

// imageLaws are about the removal of images.
func imageLaws() []Invariant {
	return []Invariant{{
		Name: "images-held", Rules: "F-34",
		Says:  "no image is removed while a pod that has it in its spec is synced",
		begin: imagesHeld,
	}}
}

func imagesHeld(t *truth) func(*Entry) string {
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
