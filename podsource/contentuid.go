package podsource

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ContentUID returns a UID for a pod of a source of one's own: it depends on the namespace, the name
// and the spec, so that a pod whose spec has changed is another pod, which replaces the first. Labels,
// annotations and the status do not change it. It has the form of a UUID.
//
// It must be called with the same defaults each time: either always before manifest.Default or always
// after it.
func ContentUID(pod *v1.Pod) (types.UID, error) {
	spec, err := json.Marshal(&pod.Spec)
	if err != nil {
		return "", fmt.Errorf("podsource: content of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q ", pod.Namespace, pod.Name)
	h.Write(spec)
	sum := h.Sum(nil)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8 of RFC 9562: by a hash of one's own
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])), nil
}
