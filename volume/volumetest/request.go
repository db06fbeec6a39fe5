package volumetest

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/volume"
)

// Request returns a request for the volume of a pod named web, in a temporary directory
// of the test.
func Request(t testing.TB, p volume.Plugin, spec *volume.Spec) volume.Request {
	t.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "u1"}}
	pod.Spec.ServiceAccountName = "builder"
	return volume.Request{
		Place: volume.Place{RootDir: t.TempDir(), PodUID: pod.UID, Plugin: p.Name(), Name: spec.DirName(), Block: spec.Block},
		Pod:   pod, Spec: spec, MountOptions: spec.MountOptions(),
	}
}
