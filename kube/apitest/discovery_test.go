package apitest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

func TestDiscoveryFollowsDefinitions(t *testing.T) {
	s := new(apitest.Server)
	client := discovery.NewDiscoveryClientForConfigOrDie(s.RESTConfig())
	found := func() bool {
		_, lists, err := client.ServerGroupsAndResources() // aggregated
		require.NoError(t, err)
		_, err = client.ServerResourcesForGroupVersion("example.com/v1")
		listed := false
		for _, list := range lists {
			listed = listed || list.GroupVersion == "example.com/v1"
		}
		assert.Equal(t, listed, err == nil, err)
		return listed
	}
	for range 3 { // the responses are cached
		assert.False(t, found())
		assert.False(t, found())
		s.Put(definition("widgets"))
		assert.True(t, found())
		assert.True(t, found())
		s.Remove("customresourcedefinitions", "", "widgets.example.com")
	}
	assert.False(t, found())
}

func definition(plural string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": plural, "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
}
