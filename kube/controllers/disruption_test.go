package controllers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/kube/controllers"
)

func TestADisruptionBudgetLimitsEvictions(t *testing.T) {
	inCluster(t, 1, controllers.Config{}, func(t *testing.T, c *cluster) {
		c.deploy("web", 3, template("web", "web:1", "ready=30s"))
		budgets := c.as.PolicyV1().PodDisruptionBudgets("default")
		_, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector("web"), MaxUnavailable: new(intstr.FromInt32(1))},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		c.after(time.Minute)
		budget, err := budgets.Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, int32(1), budget.Status.DisruptionsAllowed)

		pods := c.pods("app=web")
		evict := func(name string) error {
			return c.as.PolicyV1().Evictions("default").Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
		}
		require.NoError(t, evict(pods[0].Name))
		c.after(5 * time.Second)
		require.True(t, apierrors.IsTooManyRequests(evict(pods[1].Name)))
		c.after(time.Minute)
		require.NoError(t, evict(pods[1].Name), "the first one was replaced")
	})
}
