package apitest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// recorded is an admission that adds a key, rejects the value "no" and records its calls.
type recorded struct{ calls []string }

func (r *recorded) record(step string, a *apitest.Attempt) *v1.ConfigMap {
	operation := "update"
	switch {
	case a.Old == nil:
		operation = "create"
	case a.Next == nil:
		operation = "delete"
	}
	r.calls = append(r.calls, step+" "+operation+" "+a.Kind.Kind)
	next, _ := a.Next.(*v1.ConfigMap)
	return next
}

func (r *recorded) Mutate(_ context.Context, a *apitest.Attempt) error {
	if next := r.record("mutate", a); next != nil {
		next.Data["seen"] = next.Name + " by " + a.User.Name
	}
	return nil
}

func (r *recorded) Validate(_ context.Context, a *apitest.Attempt) error {
	if next := r.record("validate", a); next != nil && next.Data["a"] == "no" {
		return errors.New("rejected")
	}
	return nil
}

func TestAdmissionHasTwoSteps(t *testing.T) {
	admission := &recorded{}
	api := &apitest.Server{Admission: admission, NoRecord: true}
	clients, err := kubernetes.NewForConfig(api.RESTConfig())
	require.NoError(t, err)
	maps := clients.CoreV1().ConfigMaps("default")
	object := func(value string) *v1.ConfigMap {
		return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Data: map[string]string{"a": value}}
	}
	_, err = maps.Create(t.Context(), object("no"), metav1.CreateOptions{})
	assert.ErrorContains(t, err, `configmaps is forbidden: rejected`)
	created, err := maps.Create(t.Context(), object("yes"), metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, "m by system:admin", created.Data["seen"])
	_, err = maps.Update(t.Context(), object("no"), metav1.UpdateOptions{})
	assert.ErrorContains(t, err, "rejected")
	require.NoError(t, maps.Delete(t.Context(), "m", metav1.DeleteOptions{}))
	assert.Equal(t, []string{
		"mutate create ConfigMap", "validate create ConfigMap", "mutate create ConfigMap", "validate create ConfigMap",
		"mutate update ConfigMap", "validate update ConfigMap", "mutate delete ConfigMap", "validate delete ConfigMap",
	}, admission.calls)
	assert.Empty(t, api.Calls(), "NoRecord")
}

func TestNoCollectionLeavesDependentsAndNamespaces(t *testing.T) {
	api := &apitest.Server{NoCollection: true}
	clients, err := kubernetes.NewForConfig(api.RESTConfig())
	require.NoError(t, err)
	_, err = clients.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	maps := clients.CoreV1().ConfigMaps("n")
	owner, err := maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID},
	}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, maps.Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	require.NoError(t, clients.CoreV1().Namespaces().Delete(t.Context(), "n", metav1.DeleteOptions{}))
	assert.NotNil(t, api.Get("configmaps", "n", "owned"))
	assert.Equal(t, v1.NamespaceTerminating, api.Get("namespaces", "", "n").(*v1.Namespace).Status.Phase)
}
