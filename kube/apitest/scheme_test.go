package apitest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// A gizmo is a custom resource with a Go type.
type gizmo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              gizmoSpec   `json:"spec,omitempty"`
	Status            gizmoStatus `json:"status,omitempty"`
}

type gizmoSpec struct {
	Size int `json:"size,omitempty"`
}

type gizmoStatus struct {
	Ready bool `json:"ready,omitempty"`
}

func (g *gizmo) DeepCopyObject() runtime.Object {
	out := *g
	out.ObjectMeta = *g.ObjectMeta.DeepCopy()
	return &out
}

type gizmoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []gizmo `json:"items"`
}

func (l *gizmoList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = append([]gizmo(nil), l.Items...)
	return &out
}

func TestKindsOfASchemeAreServed(t *testing.T) {
	sch := runtime.NewScheme()
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	sch.AddKnownTypeWithName(gv.WithKind("Gizmo"), &gizmo{})
	sch.AddKnownTypeWithName(gv.WithKind("GizmoList"), &gizmoList{})
	api := &apitest.Server{Scheme: sch, Resources: []metav1.APIResource{{Group: "example.com", Kind: "Gizmo", Name: "gizmos", Namespaced: false}}}
	client, err := dynamic.NewForConfig(api.RESTConfig())
	require.NoError(t, err)
	gizmos := client.Resource(gv.WithResource("gizmos"))
	_, err = gizmos.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": map[string]any{"name": "g"},
		"spec": map[string]any{"size": int64(1)}, "status": map[string]any{"ready": true},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	g := api.Get("gizmos", "", "g").(*gizmo)
	assert.Equal(t, gizmoSpec{1}, g.Spec)
	assert.False(t, g.Status.Ready, "the status is a subresource")
	_, err = gizmos.Patch(t.Context(), "g", types.MergePatchType, []byte(`{"spec":{"size":7},"status":{"ready":true}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	g = api.Get("gizmos.example.com", "", "g").(*gizmo)
	assert.Equal(t, gizmoSpec{1}, g.Spec)
	assert.True(t, g.Status.Ready)
	_, err = gizmos.Apply(t.Context(), "g", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": map[string]any{"name": "g"}, "spec": map[string]any{"size": int64(9)},
	}}, metav1.ApplyOptions{FieldManager: "two", Force: true})
	require.NoError(t, err)
	assert.Equal(t, 9, api.Get("gizmos", "", "g").(*gizmo).Spec.Size)
	list, err := gizmos.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list.Items, 1)
}

func TestWrongDescriptionsAreReported(t *testing.T) {
	api := &apitest.Server{Scheme: runtime.NewScheme(), Resources: []metav1.APIResource{{Group: "example.com", Kind: "Gizmo", Name: "gizmos"}}}
	_, err := connect(t, api.RESTConfig()).CoreV1().Pods("prod").List(t.Context(), metav1.ListOptions{})
	assert.ErrorContains(t, err, `no kind Gizmo of group "example.com"`)
}
