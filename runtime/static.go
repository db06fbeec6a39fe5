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

	// ConfigHashAnnotation is the hash of a static pod's manifest, node and origin.
	ConfigHashAnnotation = "kubernetes.io/config.hash"
)

// apiSource is podsource.APISource.
const apiSource = "api"

// IsStatic reports whether pod is static: it has a source, and that is not the API
// server.
func IsStatic(pod *v1.Pod) bool {
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
