package hollow_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/kube/hollow"
)

func TestMetricsAreTheUsageOfBehaviors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		nodes := fakenode.Start(t.Context(), t, api.RESTConfig(), fakenode.Config{Nodes: fakenode.Many(2, fakenode.Node{})})
		for name, behavior := range map[string]string{"grows": "memory=16Mi;48Mi@1m,cpu=250m", "ends": "exit=0@1s,cpu=1"} {
			api.Put(&v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", Labels: map[string]string{"app": name}, Annotations: map[string]string{fakenode.Annotation: behavior}},
				Spec:       v1.PodSpec{NodeName: "fake-0", RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
			})
		}
		time.Sleep(time.Minute + 30*time.Second)
		list, handler := hollow.Metrics(nodes)
		get := func(path string) (int, string) {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/apis/"+list.GroupVersion+path, nil))
			assert.True(t, json.Valid(w.Body.Bytes()))
			return w.Code, w.Body.String()
		}
		const pod = `{"kind":"PodMetrics","apiVersion":"metrics.k8s.io/v1beta1","metadata":{"name":"grows","namespace":"a","labels":{"app":"grows"}},` +
			`"timestamp":"2000-01-01T00:01:30Z","window":"15s","containers":[{"name":"main","usage":{"cpu":"250m","memory":"48Mi"}}]}`
		code, text := get("/namespaces/a/pods/grows")
		assert.Equal(t, http.StatusOK, code)
		assert.JSONEq(t, pod, text)
		const lists = `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[`
		for path, want := range map[string]string{
			"/pods": pod, "/namespaces/a/pods": pod, "/pods?labelSelector=app%3Dgrows": pod, "/pods?labelSelector=app%3Dends": "", "/namespaces/b/pods": "",
		} {
			_, text := get(path)
			assert.JSONEq(t, lists+want+"]}", text, path)
		}
		_, text = get("/nodes/fake-0")
		assert.Contains(t, text, `"usage":{"cpu":"250m","memory":"48Mi"}`)
		_, text = get("/nodes")
		assert.Contains(t, text, `"name":"fake-1"`)
		for path, want := range map[string]int{
			"/nodes/fake-9": http.StatusNotFound, "/namespaces/a/nodes": http.StatusNotFound, "/cups": http.StatusNotFound, "/pods/a/b": http.StatusNotFound,
			"/pods?labelSelector=%3D": http.StatusBadRequest,
		} {
			code, _ := get(path)
			assert.Equal(t, want, code, path)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodDelete, "/apis/"+list.GroupVersion+"/pods", nil))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	})
}
