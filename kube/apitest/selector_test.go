package apitest_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/runtime"
)

func labeled(name, app string) *v1.Pod {
	pod := newPod(name, "n1")
	pod.Labels = map[string]string{"app": app}
	return pod
}

func TestAListHonorsLabelSelectors(t *testing.T) {
	api := new(apitest.Server)
	api.Put(labeled("web", "web"), labeled("db", "db"), newPod("other", "n1"))
	pods := connect(t, api.RESTConfig()).CoreV1().Pods("prod")
	for selector, want := range map[string][]string{
		"":                    {"db", "other", "web"},
		"app=web":             {"web"},
		"app!=web":            {"db", "other"},
		"app in (web,db)":     {"db", "web"},
		"!app":                {"other"},
		"app=web,tier=absent": nil,
	} {
		list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: selector, FieldSelector: "spec.nodeName=n1"})
		require.NoError(t, err)
		var names []string
		for _, pod := range list.Items {
			names = append(names, pod.Name)
		}
		assert.Equal(t, want, names, selector)
	}
	assert.Len(t, api.Calls("list", "pods"), 6)
}

func TestAWatchHonorsLabelSelectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		w, err := connect(t, api.RESTConfig()).CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=web", ResourceVersion: "0"})
		require.NoError(t, err)
		defer w.Stop()
		synctest.Wait() // the watch has begun
		api.Put(labeled("db", "db"), labeled("web", "web"), labeled("web", "db"))
		for _, want := range []string{"ADDED web", "DELETED web"} {
			e := <-w.ResultChan()
			assert.Equal(t, want, string(e.Type)+" "+e.Object.(*v1.Pod).Name)
		}
	})
}

func TestUnsupportedRequestsAreRejected(t *testing.T) {
	api := new(apitest.Server)
	api.Put(newPod("web", "n1"))
	c := connect(t, api.RESTConfig()).CoreV1()
	for name, opts := range map[string]metav1.ListOptions{
		"unknown field":     {FieldSelector: "spec.priority=1"},
		"field of another":  {FieldSelector: "involvedObject.name=web"},
		"no selector":       {FieldSelector: "a=b=c"},
		"no label selector": {LabelSelector: "app in"},
		"continue":          {Continue: "token"},
	} {
		_, err := c.Pods("prod").List(t.Context(), opts)
		assert.True(t, apierrors.IsBadRequest(err), "%s: list: %v", name, err)
	}
	_, err := c.Pods("prod").Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.priority=1"})
	assert.True(t, apierrors.IsBadRequest(err), "watch: %v", err)
	list, err := c.Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=web,type=Warning"})
	require.NoError(t, err)
	assert.Empty(t, list.Items)
}

// A REST mapper, as of a controller-runtime manager, works by discovery.
func TestResourcesAreDiscovered(t *testing.T) {
	cfg := new(apitest.Server).RESTConfig()
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	require.NoError(t, err)
	groups, err := restmapper.GetAPIGroupResources(d)
	require.NoError(t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for kind, want := range map[schema.GroupVersionKind]struct {
		resource string
		scope    meta.RESTScopeName
	}{
		{Version: "v1", Kind: "Pod"}:                                                     {"pods", meta.RESTScopeNameNamespace},
		{Version: "v1", Kind: "Node"}:                                                    {"nodes", meta.RESTScopeNameRoot},
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}:                     {"leases", meta.RESTScopeNameNamespace},
		{Group: "storage.k8s.io", Version: "v1", Kind: "CSIDriver"}:                      {"csidrivers", meta.RESTScopeNameRoot},
		{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview"}:             {"tokenreviews", meta.RESTScopeNameRoot},
		{Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"}: {"certificatesigningrequests", meta.RESTScopeNameRoot},
	} {
		m, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		require.NoError(t, err, "%v", kind)
		assert.Equal(t, want.resource, m.Resource.Resource)
		assert.Equal(t, want.scope, m.Scope.Name(), "%v", kind)
	}
	_, err = mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"})
	assert.True(t, meta.IsNoMatchError(err))
	_, err = d.ServerResourcesForGroupVersion("apps/v1beta1")
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	list, err := d.ServerGroups()
	require.NoError(t, err)
	for _, group := range list.Groups {
		if group.Name == "certificates.k8s.io" {
			assert.Len(t, group.Versions, 2)
			assert.Equal(t, "v1", group.PreferredVersion.Version)
		}
	}
	assert.Len(t, list.Groups, 22, "the core group among them")
	v, err := d.ServerVersion()
	require.NoError(t, err)
	assert.Equal(t, "v"+runtime.KubernetesMajorMinor+".0-apitest", v.GitVersion)
}

func TestFieldsOfEventsHaveTheNamesOfTheirGroup(t *testing.T) {
	api := new(apitest.Server)
	event := func(name, kind string) *v1.Event {
		return &v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name}, InvolvedObject: v1.ObjectReference{Kind: kind, Name: "a"}, Reason: "Started"}
	}
	api.Put(event("pod", "Pod"), event("job", "Job"))
	client := connect(t, api.RESTConfig())
	list, err := client.EventsV1().Events("prod").List(t.Context(), metav1.ListOptions{FieldSelector: "regarding.kind=Job,reason=Started"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.Equal(t, "job", list.Items[0].Name)
	_, err = client.EventsV1().Events("prod").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Job"})
	assert.ErrorContains(t, err, "field label not supported: involvedObject.kind")
	_, err = client.CoreV1().Events("prod").List(t.Context(), metav1.ListOptions{FieldSelector: "regarding.kind=Job"})
	assert.ErrorContains(t, err, "field label not supported: regarding.kind")
}
