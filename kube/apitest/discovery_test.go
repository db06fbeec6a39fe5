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

// TestDocumentsOfCustomResourcesHaveURLsOfTheirSchemas changes a definition and adds another of
// the same group version: a client that keeps the document must notice.
func TestDocumentsOfCustomResourcesHaveURLsOfTheirSchemas(t *testing.T) {
	s := new(apitest.Server)
	client := discovery.NewDiscoveryClientForConfigOrDie(s.RESTConfig())
	seen := map[string]bool{}
	url := func(path string) string {
		paths, err := client.OpenAPIV3().Paths()
		require.NoError(t, err)
		return paths[path].ServerRelativeURL()
	}
	for _, generation := range []int64{1, 2} {
		d := definition("widgets")
		d.SetUID("one")
		d.SetGeneration(generation)
		s.Put(d)
		seen[url("apis/example.com/v1")] = true
	}
	s.Put(definition("others"))
	seen[url("apis/example.com/v1")] = true
	assert.Len(t, seen, 3, seen)
	assert.Equal(t, "/openapi/v3/api/v1", url("api/v1"))
	paths, err := client.OpenAPIV3().Paths()
	require.NoError(t, err)
	data, err := paths["apis/example.com/v1"].Schema("application/json")
	require.NoError(t, err)
	assert.Contains(t, string(data), "com.example.v1.Widget")
}
