package staticuid

import (
	"bufio"
	"crypto/md5"
	"encoding/hex"
	"hash/fnv"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An Origin is where the manifest of a static pod comes from.
type Origin struct {
	// Node is the name of the node. It is part of the UID of a pod from a file only.
	Node string

	// File is the path of the manifest; empty if it is not from a file.
	File string

	// URL is the address of the web server, with its password; empty if the manifest is from a
	// file.
	URL string
}

// A Release is a minor version of Kubernetes whose UIDs are known: 37 is 1.37.
type Release int

// Releases are all known ones, the newest first.
var Releases = [...]Release{38, 37, 36, 35, 34}

// UID returns the UID that the kubelet of the release gives to a static pod whose manifest
// has none, as 32 hex digits. The pod has the default values of that release, and the name
// and tolerations of the manifest; since 1.38, FormatQuantities was called before its default
// values were set. It is not changed. The release must be one of Releases.
func (r Release) UID(pod *v1.Pod, from Origin) types.UID {
	h := fnv.New128a()
	if r <= 34 {
		h = md5.New()
	}
	out := bufio.NewWriter(h)
	r.dump(out, pod)
	if from.URL != "" {
		out.WriteString("url:" + from.URL)
	} else {
		out.WriteString("host:" + strings.ToLower(from.Node) + "file:" + from.File)
	}
	out.Flush() // a hash does not fail
	return types.UID(hex.EncodeToString(h.Sum(nil)))
}

// dump writes what is hashed of the pod.
func (r Release) dump(out *bufio.Writer, pod *v1.Pod) {
	untyped := *pod
	untyped.TypeMeta = metav1.TypeMeta{} // an internal object has none
	d := dumper{out: out, layout: layouts()[r], release: r, spec: reflect.ValueOf(&pod.Spec).Elem()}
	d.typed("*core.Pod", reflect.ValueOf(&untyped))
}
