package apitest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

func TestPagesOfAListAreConsistent(t *testing.T) {
	api := new(apitest.Server)
	for i := range 7 {
		api.Put(newPod(fmt.Sprintf("p%d", i), "n1"))
	}
	pods := connect(t, api.RESTConfig()).CoreV1().Pods("prod")
	var names []string
	opts := metav1.ListOptions{Limit: 3}
	version := ""
	for page := 0; ; page++ {
		list, err := pods.List(t.Context(), opts)
		require.NoError(t, err)
		for _, pod := range list.Items {
			names = append(names, pod.Name)
		}
		if version == "" {
			version = list.ResourceVersion
			require.EqualValues(t, 4, *list.RemainingItemCount)
		}
		assert.Equal(t, version, list.ResourceVersion)
		if opts.Continue = list.Continue; opts.Continue == "" {
			break
		}
		api.Remove("pods", "prod", "p5") // the pages present the state at the first one
		api.Put(newPod("p1a", "n1"))
	}
	assert.Equal(t, []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6"}, names)

	list, err := pods.List(t.Context(), metav1.ListOptions{Limit: 3})
	require.NoError(t, err)
	api.Compact()
	_, err = pods.List(t.Context(), metav1.ListOptions{Limit: 3, Continue: list.Continue})
	assert.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

func TestListsHonorResourceVersions(t *testing.T) {
	api := &apitest.Server{History: 2}
	first := api.Put(newPod("a", "n1"))[0].(metav1.Object).GetResourceVersion()
	second := api.Put(newPod("b", "n1"))[0].(metav1.Object).GetResourceVersion()
	pods := connect(t, api.RESTConfig()).CoreV1().Pods("prod")
	count := func(version string, match metav1.ResourceVersionMatch) int {
		list, err := pods.List(t.Context(), metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: match})
		require.NoError(t, err)
		return len(list.Items)
	}
	assert.Equal(t, 1, count(first, metav1.ResourceVersionMatchExact))
	assert.Equal(t, 2, count(second, metav1.ResourceVersionMatchExact))
	assert.Equal(t, 2, count(first, metav1.ResourceVersionMatchNotOlderThan))
	assert.Equal(t, 2, count("0", ""))
	_, err := pods.List(t.Context(), metav1.ListOptions{ResourceVersion: "1000"})
	assert.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)
	_, err = pods.List(t.Context(), metav1.ListOptions{ResourceVersion: "x"})
	assert.True(t, apierrors.IsBadRequest(err), "%v", err)
	_, err = pods.List(t.Context(), metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
	for range 5 {
		api.Put(newPod("b", "n1"))
	}
	_, err = pods.List(t.Context(), metav1.ListOptions{ResourceVersion: first, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	assert.True(t, apierrors.IsResourceExpired(err), "%v", err)
}
