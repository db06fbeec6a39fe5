package runtime

import v1 "k8s.io/api/core/v1"

// Annotations that a source sets on pods. They are set on the node only and do not occur in the API
// server. The API server's copy of a static pod, its mirror pod, has the annotation
// v1.MirrorPodAnnotationKey, whose value is the ConfigHashAnnotation of the static pod; a mirror pod
// with another value is outdated.
const (
	// ConfigSourceAnnotation is the name of the source that specifies the pod.
	ConfigSourceAnnotation = "kubernetes.io/config.source"

	// ConfigSeenAnnotation is the time at which the agent first received the pod, in RFC
	// 3339 with nanoseconds.
	ConfigSeenAnnotation = "kubernetes.io/config.seen"

	// ConfigStaticAnnotation is "true" or "false" on a pod of which IsStatic would report
	// the opposite by the name of its source. A kubelet has no such annotation.
	ConfigStaticAnnotation = "kubeparts.io/config.static"

	// ConfigHashAnnotation is the hash of a static pod's manifest, node and origin.
	ConfigHashAnnotation = "kubernetes.io/config.hash"
)

// apiSource is podsource.APISource.
const apiSource = "api"

// IsStatic reports whether pod is static: the agent may not change its object, which has no final
// phase, and it is not evicted. podsource.MergeConfig.Static decides for the pods of a source.
// Without the annotation ConfigStaticAnnotation it is static if it has a source that is not the API
// server, as in a kubelet.
func IsStatic(pod *v1.Pod) bool {
	if static, ok := pod.Annotations[ConfigStaticAnnotation]; ok {
		return static == "true"
	}
	source, ok := pod.Annotations[ConfigSourceAnnotation]
	return ok && source != apiSource
}

// IsMirror reports whether pod is an API server's copy of a static pod.
func IsMirror(pod *v1.Pod) bool {
	_, ok := pod.Annotations[v1.MirrorPodAnnotationKey]
	return ok
}

// PodFullName returns the name under which at most one static pod may run:
// "<name>_<namespace>".
func PodFullName(pod *v1.Pod) string { return pod.Name + "_" + pod.Namespace }
