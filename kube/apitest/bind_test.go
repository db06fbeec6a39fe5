package apitest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

func TestAPodIsBoundOnce(t *testing.T) {
	for _, mime := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		api := new(apitest.Server)
		api.Put(newPod("web", ""))
		config := rest.CopyConfig(api.RESTConfig())
		config.ContentType, config.AcceptContentTypes = mime, mime
		bind := func(name, uid string) error {
			return connect(t, config).CoreV1().Pods("prod").Bind(t.Context(), &v1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}, Target: v1.ObjectReference{Kind: "Node", Name: "n1"},
			}, metav1.CreateOptions{})
		}
		assert.True(t, apierrors.IsNotFound(bind("missing", "")))
		assert.True(t, apierrors.IsConflict(bind("web", "other")))
		require.NoError(t, bind("web", ""))
		pod := api.Pod("prod", "web")
		assert.Equal(t, "n1", pod.Spec.NodeName)
		require.Len(t, pod.Status.Conditions, 1)
		assert.Equal(t, v1.PodScheduled, pod.Status.Conditions[0].Type)
		assert.ErrorContains(t, bind("web", ""), `already assigned to node "n1"`)
	}
}

// TestABindingNamesItsPod uses the resource bindings in place of the subresource of a pod.
func TestABindingNamesItsPod(t *testing.T) {
	api := new(apitest.Server)
	api.Put(newPod("web", ""))
	bind := func(name string) error {
		return connect(t, api.RESTConfig()).CoreV1().RESTClient().Post().Namespace("prod").Resource("bindings").Body(&v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Target: v1.ObjectReference{Kind: "Node", Name: "n1"},
		}).Do(t.Context()).Error()
	}
	assert.EqualError(t, bind("missing"), `pods "missing" not found`)
	require.NoError(t, bind("web"))
	assert.Equal(t, "n1", api.Pod("prod", "web").Spec.NodeName)
}
