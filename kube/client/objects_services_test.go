package client_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

func newService(namespace, name string) *v1.Service {
	return &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.ServiceSpec{ClusterIP: "10.0.0.1"}}
}

func names(list []*v1.Service) (out []string) {
	for _, service := range list {
		out = append(out, service.Namespace+"/"+service.Name)
	}
	return out
}

func TestServicesOfTheNamespacesThatNeedThem(t *testing.T) { // pe-12; virtual-kubelet gets this wrong
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		s.api.Put(newService("default", "kubernetes"), newService("default", "other"), newService("prod", "web"), newService("prod", "db"), newService("test", "web"))
		linked, unlinked := newPod("linked"), newPod("unlinked")
		linked.UID, unlinked.UID, unlinked.Namespace = "linked", "unlinked", "test"
		unlinked.Spec.EnableServiceLinks = new(false)
		s.Register(linked)
		s.Register(unlinked)
		list, ok := s.Services(t.Context(), "prod")
		require.True(t, ok)
		assert.Equal(t, []string{"default/kubernetes", "prod/db", "prod/web"}, names(list))
		list, ok = s.Services(t.Context(), "test")
		require.True(t, ok)
		assert.Equal(t, []string{"default/kubernetes"}, names(list), "no pod of the namespace uses services")
		list, ok = s.Services(t.Context(), "default")
		require.True(t, ok)
		assert.Equal(t, []string{"default/kubernetes", "default/other"}, names(list), "without a registration all services are returned")
		assert.Zero(t, len(slices.DeleteFunc(s.api.Calls("services"), func(c apitest.Call) bool { return c.Namespace != "" })), "never of the whole cluster")

		s.api.Put(newService("prod", "cache"))
		synctest.Wait()
		list, _ = s.Services(t.Context(), "prod")
		assert.Len(t, list, 4)
	})
}

func TestServicesThatWereNeverReadAreNotNone(t *testing.T) { // pe-1
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		s.faults.set(func(apitest.Call) apitest.Fault { return apitest.Fault{Refuse: true} })
		_, ok := s.Services(t.Context(), "prod")
		assert.False(t, ok)
		begin := time.Now()
		_, ok = s.Services(t.Context(), "prod")
		assert.False(t, ok)
		assert.Zero(t, time.Since(begin), "static pods do not wait for an API that is known to be away")
		s.faults.set(nil)
		pass(time.Minute)
		_, ok = s.Services(t.Context(), "prod")
		assert.True(t, ok)
	})
}

func TestTheHandlerOfARuntimeClass(t *testing.T) { // rt-20
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		s.api.Put(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}, Handler: "runsc"})
		handler, err := s.RuntimeClass("gvisor")
		require.NoError(t, err)
		assert.Equal(t, "runsc", handler)
		handler, err = s.RuntimeClass("")
		require.NoError(t, err)
		assert.Empty(t, handler)
		_, err = s.RuntimeClass("none")
		require.True(t, apierrors.IsNotFound(err))
		var lookup func(string) (string, error) = cri.Config{Providers: cri.Providers{RuntimeClass: s.RuntimeClass}}.Providers.RuntimeClass
		assert.NotNil(t, lookup)
	})
}
