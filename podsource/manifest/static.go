package manifest

import (
	"encoding/hex"
	"hash/fnv"
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
// zero value is that of pods from files.
type StaticOptions struct {
	// LocalObjects admits references to ConfigMaps, Secrets and CSI drivers, for nodes
	// that have such objects without an API server.
	LocalObjects bool

	// NoToleration does not make the pod tolerate NoExecute taints, as of pods from a
	// URL (rule src-19).
	NoToleration bool
}

// Static returns the static pod that a node makes of a manifest: decoded, defaulted,
// validated and annotated. It is a pure function.
//
// The origin is where the manifest comes from, such as "file:/etc/x.yaml"; the same
// manifest at two origins is two pods.
//
//   - The name becomes "<name>-<lower-case node name>", the namespace defaults to
//     "default", spec.nodeName is the node, the phase is Pending (rule src-17).
//   - If the manifest has no UID, the pod's is derived from its content, the node and
//     the origin (rule src-16): a changed manifest is another pod, an unchanged one is the
//     same pod after a restart. The derivation covers the manifest's JSON instead of the
//     Go type, so that it does not depend on the version of the API.
//   - The annotation [runtime.ConfigHashAnnotation] has the derived value also if the manifest
//     has a UID.
//   - It tolerates every NoExecute taint (rule src-19).
//
// Besides the rules of [Validate], a static pod must not refer to objects of an API
// server (rule src-21): it must start without one, and must not be a way to read Secrets
// around its permissions. A manifest with the annotation of a mirror pod is an error: it
// is the saved copy of another pod.
//
// Errors are one line and name the fields; callers add the origin.
func Static(manifest []byte, nodeName, origin string, opts StaticOptions) (*v1.Pod, error) {
	decoded, canonical, err := decode(manifest)
	if err != nil {
		return nil, err
	}
	pod := Default(decoded)
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
	hash := contentHash(canonical, nodeName, origin)
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

// contentHash returns the 128-bit FNV-1a hash of a manifest, its node and its origin as
// 32 hex digits. The parts contain no zero bytes and are separated by them.
// Golden vectors in the tests keep it stable: a change restarts every static pod of
// every node that is upgraded.
func contentHash(canonical []byte, nodeName, origin string) string {
	h := fnv.New128a()
	h.Write(canonical)
	h.Write([]byte("\x00host:" + nodeName))
	h.Write([]byte("\x00" + origin))
	return hex.EncodeToString(h.Sum(nil))
}
