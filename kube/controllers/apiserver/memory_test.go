package apiserver_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/controllers/apiserver"
)

// template returns the schema of an object with many fields, as that of a pod template.
func template() map[string]any {
	fields := map[string]any{}
	for i := range 300 {
		fields[fmt.Sprintf("field%03d", i)] = map[string]any{
			"type": "object", "description": strings.Repeat("text ", 10), "required": []any{"name"},
			"properties": map[string]any{
				"name": map[string]any{"type": "string", "maxLength": int64(i + 1), "pattern": "^[a-z]*$"},
				"port": map[string]any{"type": "integer", "format": "int32", "minimum": int64(i), "description": strings.Repeat("text ", 10)},
			},
		}
	}
	return map[string]any{"type": "object", "properties": fields}
}

// used returns the heap that a definition with a number of templates takes, in one version that
// is in use.
func used(t *testing.T, templates int) uint64 {
	t.Helper()
	api := new(apitest.Server)
	stop, err := apiserver.Start(t.Context(), api, apiserver.Config{})
	require.NoError(t, err)
	defer stop()
	clients, err := dynamic.NewForConfig(api.RESTConfig())
	require.NoError(t, err)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	spec := map[string]any{}
	for i := range templates {
		spec[fmt.Sprint("template", i)] = template()
	}
	properties := map[string]any{"spec": map[string]any{"type": "object", "properties": spec}, "status": map[string]any{"type": "object", "properties": spec}}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Cluster", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}},
			}},
		},
	})
	require.NoError(t, err)
	definition := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(text, &definition.Object))
	definitions := clients.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	_, err = definitions.Create(t.Context(), definition, metav1.CreateOptions{})
	require.NoError(t, err)
	widgets := clients.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
	one := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "one"}}}
	one, err = widgets.Create(t.Context(), one, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = widgets.UpdateStatus(t.Context(), one, metav1.UpdateOptions{})
	require.NoError(t, err)
	definition, spec, properties, text = nil, nil, nil, nil
	after := heap()
	runtime.KeepAlive(api)
	return after - min(before, after)
}

// TestRepeatedSchemasTakeLittleMemory compares definitions of one and of eight equal templates.
func TestRepeatedSchemasTakeLittleMemory(t *testing.T) {
	used(t, 1) // what is made once for all definitions
	one, eight := used(t, 1), used(t, 8)
	t.Logf("one template: %d KB, eight: %d KB", one>>10, eight>>10)
	assert.Less(t, eight, 3*one)
}
