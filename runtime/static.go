package runtime

import v1 "k8s.io/api/core/v1"

// Annotations by which the parts of an agent recognize static pods and their mirrors.
// All but ConfigMirrorAnnotation are local to the node: no API server has them.
const (
	// ConfigSourceAnnotation is the name of the source that specifies the pod (src-2).
	ConfigSourceAnnotation = "kubernetes.io/config.source"

	// ConfigSeenAnnotation is the time at which the agent first received the pod, in RFC
	// 3339 with nanoseconds (src-3).
	ConfigSeenAnnotation = "kubernetes.io/config.seen"

	// ConfigHashAnnotation is the hash of a static pod's manifest, node and origin (src-18).
	ConfigHashAnnotation = "kubernetes.io/config.hash"

	// ConfigMirrorAnnotation marks the API server's copy of a static pod. Its value is the
	// ConfigHashAnnotation of the static pod; with another one the mirror is outdated.
	ConfigMirrorAnnotation = v1.MirrorPodAnnotationKey
)

// apiSource is podsource.APISource.
const apiSource = "api"

// IsStatic reports whether pod is static: it has a source, and that is not the API
// server (src-2).
func IsStatic(pod *v1.Pod) bool {
	source, ok := pod.Annotations[ConfigSourceAnnotation]
	return ok && source != apiSource
}

// IsMirror reports whether pod is an API server's copy of a static pod.
func IsMirror(pod *v1.Pod) bool {
	_, ok := pod.Annotations[ConfigMirrorAnnotation]
	return ok
}

// PodFullName returns the name under which at most one static pod may run:
// "<name>_<namespace>".
func PodFullName(pod *v1.Pod) string { return pod.Name + "_" + pod.Namespace }
