package apitest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// A merge patch of a status does not convert the spec and the managed fields, a JSON patch
// converts all of the object: both must have the same result.
func TestAMergePatchOfAStatusKeepsWhatItDoesNotConvert(t *testing.T) {
	for name, tc := range map[string]struct{ merge, json string }{
		"a status": {`{"status":{"phase":"Running"}}`, `[{"op":"add","path":"/status/phase","value":"Running"}]`},
		"a status and a precondition": {
			`{"metadata":{"uid":"uid-1"},"status":{"phase":"Running"}}`,
			`[{"op":"add","path":"/metadata/uid","value":"uid-1"},{"op":"add","path":"/status/phase","value":"Running"}]`,
		},
		"a label":           {`{"metadata":{"labels":{"a":"b"}}}`, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`},
		"no managed fields": {`{"metadata":{"managedFields":[{}]},"status":{"phase":"Running"}}`, `[{"op":"replace","path":"/metadata/managedFields","value":[{}]},{"op":"add","path":"/status/phase","value":"Running"}]`},
		"a spec":            {`{"spec":{"nodeName":"other"},"status":{"phase":"Running"}}`, `[{"op":"add","path":"/spec/nodeName","value":"other"},{"op":"add","path":"/status/phase","value":"Running"}]`},
		"nothing":           {`{}`, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			patched := func(kind types.PatchType, data string) *v1.Pod {
				api := new(apitest.Server)
				client, err := kubernetes.NewForConfig(api.RESTConfig())
				require.NoError(t, err)
				pods := client.CoreV1().Pods("default")
				created, err := pods.Create(t.Context(), &v1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: "web"},
					Spec:       v1.PodSpec{NodeName: "node", Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
				}, metav1.CreateOptions{})
				require.NoError(t, err)
				require.NotEmpty(t, created.ManagedFields)
				pod, err := pods.Patch(t.Context(), "web", kind, []byte(data), metav1.PatchOptions{}, "status")
				require.NoError(t, err)
				assert.Equal(t, created.Spec, pod.Spec)
				for i := range pod.ManagedFields {
					pod.ManagedFields[i].Time = nil
				}
				pod.CreationTimestamp = metav1.Time{}
				return pod
			}
			want := patched(types.JSONPatchType, tc.json)
			assert.Equal(t, want, patched(types.StrategicMergePatchType, tc.merge))
			assert.Equal(t, want, patched(types.MergePatchType, tc.merge))
		})
	}
}
