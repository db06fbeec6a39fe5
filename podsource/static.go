package podsource

import (
	"encoding/hex"
	"fmt"
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

// Static returns the static pod that a node makes of a manifest: decoded,
// defaulted, validated and marked. It is a function of its arguments.
//
// origin says where the manifest comes from, in the form "file:/etc/x.yaml";
// the same manifest at two origins is two pods.
//
//   - The name becomes "<name>-<lower-case node name>", the namespace defaults
//     to "default", spec.nodeName is the node, the phase is Pending (src-17).
//   - Without a UID in the manifest, the pod gets one derived from its content,
//     the node and the origin (src-16), so that a changed manifest is a new
//     pod, and the same one is the same pod after a restart. The derivation is
//     over the manifest's own JSON and not over the Go type, so that no new
//     version of the library or of the API changes it.
//   - The annotation [runtime.HashAnnotation] holds the derived value also where the
//     manifest has a UID of its own (lq-25).
//   - It tolerates every NoExecute taint (src-19).
func Static(manifest []byte, nodeName, origin string) (*v1.Pod, error) {
	pod, err := static(manifest, nodeName, origin, false)
	if err != nil {
		return nil, fmt.Errorf("podsource: %s: %w", origin, err)
	}
	tolerateNoExecute(&pod.Spec)
	return pod, nil
}

// static is Static without the toleration, which pods of a URL do not get. With
// localObjects pods may refer to ConfigMaps, Secrets and CSI drivers.
func static(manifest []byte, nodeName, origin string, localObjects bool) (*v1.Pod, error) {
	decoded, canonical, err := decode(manifest)
	if err != nil {
		return nil, err
	}
	pod := Default(decoded)
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	if pod.Name == "" {
		// Checked here as generateName would do for an API object (src-15).
		return nil, field.Required(field.NewPath("metadata", "name"), "name is needed for the pod")
	}
	// Validated before it is marked, so that errors show what the author
	// wrote.
	refused := ValidateStatic(pod)
	if localObjects {
		refused = slices.DeleteFunc(refused, func(e *field.Error) bool {
			return slices.Contains([]string{staticMayNot + "secrets", staticMayNot + "configmaps", staticMayNot + "csidrivers"}, e.Detail)
		})
	}
	if errs := append(Validate(pod), refused...); len(errs) > 0 {
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
	pod.Annotations[runtime.HashAnnotation] = hash
	return pod, nil
}

// tolerateNoExecute keeps taints from driving a static pod off: nobody would
// place it elsewhere (src-19).
func tolerateNoExecute(spec *v1.PodSpec) {
	all := v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	for _, t := range spec.Tolerations {
		if t == all {
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, all)
}

// contentHash is the 128-bit FNV-1a hash of a manifest and its whereabouts, 32
// digits of hex (L-29). Zero bytes, which none of the parts has, keep them
// apart. Golden vectors in the tests hold it in place: a change of it restarts
// every static pod of every node that is upgraded.
func contentHash(canonical []byte, nodeName, origin string) string {
	h := fnv.New128a()
	h.Write(canonical)
	h.Write([]byte("\x00host:" + nodeName))
	h.Write([]byte("\x00" + origin))
	return hex.EncodeToString(h.Sum(nil))
}
