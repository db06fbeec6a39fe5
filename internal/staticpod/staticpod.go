// Package staticpod knows the marks by which a pod tells where it comes from.
// podsource sets them, podworker and status read them.
package staticpod

import v1 "k8s.io/api/core/v1"

// The annotations (src-2, src-3, src-18, ps-2).
const (
	SourceAnnotation = "kubernetes.io/config.source" // the name of the source
	SeenAnnotation   = "kubernetes.io/config.seen"   // when the agent first saw it
	HashAnnotation   = "kubernetes.io/config.hash"   // of its content
	MirrorAnnotation = "kubernetes.io/config.mirror" // on the API's copy of a static pod: that hash
)

// APISource is the name of the source whose pods are not static.
const APISource = "api"

// Is reports whether pod is static: it comes from a named source that is not
// the API server (src-2).
func Is(pod *v1.Pod) bool {
	source, ok := pod.Annotations[SourceAnnotation]
	return ok && source != APISource
}

// FullName returns the name under which at most one static pod may run.
func FullName(pod *v1.Pod) string { return pod.Name + "_" + pod.Namespace }
