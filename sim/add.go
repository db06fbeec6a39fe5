package sim

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// add adds a pod to its source.
func (r *run) add(s Step) {
	pod := s.Shape.Pod(s.Pod, s.podUID())
	r.setIncarnation(pod)
	if !s.Shape.Static {
		r.create(pod)
		return
	}
	if other, _ := r.store.get(pod.UID); other != nil {
		return // the UID is in use
	}
	for _, old := range r.store.list(true) {
		if old.Name == pod.Name {
			r.note(Entry{Kind: PodRemoved, Pod: old.Name, UID: old.UID, Object: old})
		}
	}
	r.store.write(pod)
	r.note(Entry{Kind: PodAdded, Pod: pod.Name, UID: pod.UID, Object: pod, Static: true})
}

// create adds a pod to the API.
func (r *run) create(pod *v1.Pod) {
	if r.store.create(pod) {
		r.note(Entry{Kind: PodAdded, Pod: pod.Name, UID: pod.UID, Object: pod})
	}
}

func (r *run) setIncarnation(pod *v1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, incarnationAnnotation, strconv.Itoa(r.truth.pod(pod.UID).incarnations+1))
}

// setImage sets the image of the named container, and reports whether it changed.
func setImage(pod *v1.Pod, container, image string) bool {
	c := podspec.Container(pod, container)
	if c == nil || c.Image == image {
		return false
	}
	c.Image = image
	return true
}
