package fakecri

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// Behaviours say what containers do, by the names of containers and of images.
type Behaviours struct {
	Containers map[string]Behaviour
	Images     map[string]Behaviour
}

// zero is the behaviour of what has none.
var zero Behaviour

// behaviourOf returns what a container does: never nil, and never changed. r.mu
// is held.
func (r *Runtime) behaviourOf(s *sandbox, config *runtimeapi.ContainerConfig) *Behaviour {
	if b, ok := r.cfg.Behaviours.Containers[config.GetMetadata().GetName()]; ok {
		return &b
	}
	if b, ok := r.cfg.Behaviours.Images[config.GetImage().GetImage()]; ok {
		return &b
	}
	return &zero
}
