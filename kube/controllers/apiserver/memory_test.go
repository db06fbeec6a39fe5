package apiserver_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

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

// defines creates a definition with a number of templates, in one version that is in use.
func defines(t *testing.T, clients dynamic.Interface, plural string, templates int) {
	t.Helper()
	spec := map[string]any{}
	for i := range templates {
		spec[fmt.Sprint("template", i)] = template()
	}
	properties := map[string]any{"spec": map[string]any{"type": "object", "properties": spec}, "status": map[string]any{"type": "object", "properties": spec}}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + ".example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Cluster", "names": map[string]any{"plural": plural, "kind": plural},
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
	objects := clients.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: plural})
	one := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": plural, "metadata": map[string]any{"name": "one"}}}
	one, err = objects.Create(t.Context(), one, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = objects.UpdateStatus(t.Context(), one, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// settledHeap returns the size of the heap when it does not change any longer: the server's controllers process a
// definition after it was created, and their temporary memory would be taken for that of the definition, or be
// missing from the next one.
func settledHeap(t *testing.T) int64 {
	t.Helper()
	const quiet, tolerance = 10, 32 << 10 // readings in turn, and by how many bytes they may differ
	var last int64
	for same, deadline := 0, time.Now().Add(90*time.Second); same < quiet; {
		require.True(t, time.Now().Before(deadline), "the heap does not settle")
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		if now := int64(stats.HeapAlloc); max(now-last, last-now) <= tolerance {
			same++
		} else {
			same, last = 0, now
		}
		time.Sleep(100 * time.Millisecond)
	}
	return last
}

// TestRepeatedSchemasTakeLittleMemory compares definitions of one and of eight equal templates, on one server: what
// another server leaves to the garbage collector would be subtracted.
func TestRepeatedSchemasTakeLittleMemory(t *testing.T) {
	api := new(apitest.Server)
	stop, err := apiserver.Start(t.Context(), api, apiserver.Config{})
	require.NoError(t, err)
	defer stop()
	clients, err := dynamic.NewForConfig(api.RESTConfig())
	require.NoError(t, err)
	var heap []int64
	for i, templates := range []int{1, 1, 8} { // the first has what is made once for all definitions
		defines(t, clients, fmt.Sprintf("w%ds", i), templates)
		heap = append(heap, settledHeap(t))
	}
	runtime.KeepAlive(api)
	one, eight := heap[1]-heap[0], heap[2]-heap[1]
	t.Logf("one template: %d KB, eight: %d KB", one>>10, eight>>10)
	assert.Positive(t, one)
	assert.Less(t, eight, 3*one)
}
