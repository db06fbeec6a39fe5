package controllers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/controllers"
)

// kube-scheduler preempts pods of lower priority, which package fakenode does not.
func TestTheSchedulerPreempts(t *testing.T) {
	inCluster(t, 1, controllers.Config{Controllers: []string{}, Scheduler: true}, func(t *testing.T, c *cluster) {
		pods := c.as.CoreV1().Pods("default")
		create := func(name string, priority int32) {
			spec := template("", "web:1", "").Spec
			spec.Priority = &priority
			spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("5")} // of 8
			_, err := pods.Create(t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
			require.NoError(t, err)
			c.after(time.Minute)
		}
		create("low", 0)
		create("equal", 0)
		pod, err := pods.Get(t.Context(), "equal", metav1.GetOptions{})
		require.NoError(t, err)
		require.Empty(t, pod.Spec.NodeName)
		require.Equal(t, v1.PodReasonUnschedulable, pod.Status.Conditions[0].Reason)
		require.Contains(t, pod.Status.Conditions[0].Message, "0/1 nodes are available: 1 Insufficient cpu.")

		create("high", 10)
		pod, err = pods.Get(t.Context(), "high", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "fake-0", pod.Spec.NodeName)
		require.Equal(t, []string{"equal", "high"}, names(c.pods("")))
	})
}
