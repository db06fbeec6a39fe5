package topology

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// ReasonEmptyPool is the reason of rejections of pods with pod-level resources whose containers
// with resources of their own leave none for the others.
const ReasonEmptyPool = "EmptyPodSharedPoolError"

// Pools reports whether a pod is allocated CPUs or memory as a whole, of which its containers have parts: with
// PodScope, a Guaranteed pod with pod-level resources (KEP-5526).
func (s Scope) Pools(pod *v1.Pod) bool {
	return s == PodScope && podspec.HasPodResources(pod) && podspec.QOSClass(pod) == v1.PodQOSGuaranteed
}

// CheckPodLevel returns an error if s is not empty and no scope.
func (s Scope) CheckPodLevel() error {
	switch s {
	case "", ContainerScope, PodScope:
		return nil
	default:
		return fmt.Errorf("unknown scope: %q", s)
	}
}
