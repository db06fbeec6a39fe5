package cri

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageMounts caches the images that containers mount as volumes. They do not change during the
// life of a container, and only its status contains them.
type imageMounts struct {
	// mu guards pods: by UID, the images of the containers of the last inspection, by bare ID. A
	// container without such mounts has an entry too.
	mu   sync.Mutex
	pods map[types.UID]map[string][]string
}

func newImageMounts() *imageMounts {
	return &imageMounts{pods: map[types.UID]map[string][]string{}}
}

// get returns the images that a container mounts; false if its status has not been read.
func (i *imageMounts) get(uid types.UID, id string) ([]string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	images, ok := i.pods[uid][id]
	return images, ok
}

// update replaces the images of the containers of a pod.
func (i *imageMounts) update(uid types.UID, containers map[string][]string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(containers) == 0 {
		delete(i.pods, uid)
		return
	}
	i.pods[uid] = containers
}

// retain drops the images of removed pods.
func (i *imageMounts) retain(keep func(types.UID) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.DeleteFunc(i.pods, func(uid types.UID, _ map[string][]string) bool { return !keep(uid) })
}

// mountedImages returns the images in the status of a container.
func mountedImages(s *runtimeapi.ContainerStatus) (images []string) {
	for _, m := range s.GetMounts() {
		if image := m.GetImage().GetImage(); image != "" {
			images = append(images, image)
		}
	}
	return images
}
