package apitest_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

func TestAnotherHandlerServesAGroup(t *testing.T) {
	api := new(apitest.Server)
	handler := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, text+r.URL.Path) })
	}
	cups := func(version string) metav1.APIResourceList {
		return metav1.APIResourceList{GroupVersion: "tea.example.com/" + version, APIResources: []metav1.APIResource{
			{Name: "cups", SingularName: "cup", Kind: "Cup", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}},
		}}
	}
	get := func(path string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://apitest"+path, nil)
		require.NoError(t, err)
		res, err := api.RoundTrip(r)
		require.NoError(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return string(text)
	}
	assert.Contains(t, get("/apis/tea.example.com/v1/cups"), "404 page not found")
	require.NoError(t, api.Aggregate(cups("v1"), handler("first ")))
	require.NoError(t, api.Aggregate(cups("v1"), handler("")))
	assert.Equal(t, "/apis/tea.example.com/v1/namespaces/a/cups", get("/apis/tea.example.com/v1/namespaces/a/cups"))
	assert.Contains(t, get("/apis/tea.example.com/v2/cups"), "NotFound")
	assert.Contains(t, get("/api/v1/namespaces/default/pods"), "PodList")

	client := discovery.NewDiscoveryClientForConfigOrDie(api.RESTConfig())
	list, err := client.ServerResourcesForGroupVersion("tea.example.com/v1")
	require.NoError(t, err)
	assert.Equal(t, cups("v1").APIResources, list.APIResources)
	_, all, err := client.ServerGroupsAndResources()
	require.NoError(t, err)
	found := discovery.FilteredBy(discovery.ResourcePredicateFunc(func(gv string, r *metav1.APIResource) bool { return gv == "tea.example.com/v1" }), all)
	require.Len(t, found, 1)
	assert.Equal(t, metav1.Verbs{"get", "list"}, found[0].APIResources[0].Verbs)
	_, err = client.OpenAPISchema()
	require.NoError(t, err, "its types are not described")

	assert.EqualError(t, api.Aggregate(metav1.APIResourceList{GroupVersion: "apps/v1"}, handler("")), "apitest: Aggregate: the server serves the group apps itself")
	assert.EqualError(t, api.Aggregate(metav1.APIResourceList{GroupVersion: "v1"}, handler("")), `apitest: Aggregate: the group version is "v1", not <group>/<version>`)
}
