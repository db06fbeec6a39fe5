package manifest

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubeparts/kubeparts/runtime"
)

// StaticOptions are the differences between the static pods of a node's sources. The
// zero value is for pods from files.
type StaticOptions struct {
	// LocalObjects admits references to ConfigMaps, Secrets and CSI drivers, for nodes
	// that have such objects without an API server.
	LocalObjects bool

	// NoToleration does not make the pod tolerate NoExecute taints, as of pods from a
	// URL (rule src-19).
	NoToleration bool

	// Exists reports whether the node has a pod of this UID, running or not. It is called
	// with the UIDs that versions of the kubelet give to a manifest without one, until it
	// returns true, so that a pod that such a version started keeps its UID and is not
	// restarted. If nil, no pod exists.
	Exists func(types.UID) bool
}

// Static returns the static pod that a node makes of a manifest: decoded, defaulted,
// validated and annotated. It depends on its arguments only.
//
// The origin is where the manifest comes from, such as "file:/etc/x.yaml"; the same
// manifest at two origins is two pods.
//
//   - The name becomes "<name>-<lower-case node name>", the namespace defaults to
//     "default", spec.nodeName is the node, the phase is Pending (rule src-17).
//   - If the manifest has no UID, the pod's is derived from its content, the node and
//     the origin (rule src-16): a changed manifest is another pod, an unchanged one is the
//     same pod after a restart. It is the UID that a kubelet of Kubernetes 1.37 gives to
//     the pod, or that of another version under which the pod already exists:
//     see StaticOptions.Exists.
//   - The annotation [runtime.ConfigHashAnnotation] is the UID (rule src-18). If the manifest
//     has a UID, the annotation has the value of one derived from the content.
//   - It tolerates every NoExecute taint (rule src-19).
//
// Besides the rules of [Validate], a static pod must not refer to objects of an API
// server (rule src-21): it must start without one, and must not be a way to read Secrets
// around its permissions. A manifest with the annotation of a mirror pod is an error: it
// is the saved copy of another pod.
//
// Errors are one line and name the fields; callers add the origin.
func Static(manifest []byte, nodeName, origin string, opts StaticOptions) (*v1.Pod, error) {
	decoded, _, err := decode(manifest)
	if err != nil {
		return nil, err
	}
	pod := defaultAllButPodResources(decoded) // requests of the pod as a whole are set by API servers only (rule src-35)
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	if pod.Name == "" {
		// An object of the API may have a generateName instead.
		return nil, field.Required(field.NewPath("metadata", "name"), "name is needed for the pod")
	}
	// Validated before it is annotated, so that errors contain the manifest's values.
	references := validateStatic(pod)
	if opts.LocalObjects {
		references = slices.DeleteFunc(references, func(e *field.Error) bool {
			return slices.Contains([]string{mustNotReference + "secrets", mustNotReference + "configmaps", mustNotReference + "csidrivers"}, e.Detail)
		})
	}
	if errs := append(Validate(pod), references...); len(errs) > 0 {
		return nil, fieldErrors(errs)
	}

	node := strings.ToLower(nodeName)
	name := pod.Name + "-" + node
	for _, msg := range validation.IsDNS1123Subdomain(name) {
		return nil, field.Invalid(field.NewPath("metadata", "name"), name, "with the node's name added: "+msg)
	}
	hash := string(staticUID(decoded, nodeName, origin, opts.Exists))
	if pod.UID == "" {
		pod.UID = types.UID(hash)
	}
	pod.Name = name
	pod.Spec.NodeName = nodeName
	pod.Status.Phase = v1.PodPending
	if pod.Annotations == nil {
		pod.Annotations = make(map[string]string)
	}
	pod.Annotations[runtime.ConfigHashAnnotation] = hash
	if !opts.NoToleration {
		tolerateNoExecute(&pod.Spec)
	}
	return pod, nil
}

// tolerateNoExecute keeps taints from evicting a static pod: no scheduler would place
// it on another node (rule src-19).
func tolerateNoExecute(spec *v1.PodSpec) {
	all := v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	for _, t := range spec.Tolerations {
		if t == all {
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, all)
}
