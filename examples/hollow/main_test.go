package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// An API server in memory and virtual time take the place of a cluster.
func TestPodsRunOnHollowNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		ctx, interrupt := context.WithCancel(t.Context())
		var out bytes.Buffer
		stopped := make(chan error, 1)
		go func() { stopped <- run(ctx, api.RESTConfig(), "hollow", 10, 2, &out) }()
		for i := range 100 {
			api.Put(&v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("web-", i)},
				Spec: v1.PodSpec{
					NodeName:   fmt.Sprint("hollow-", i%10),
					Containers: []v1.Container{{Name: "main", Image: map[bool]string{true: "crash", false: "web"}[i == 0]}},
				},
			})
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for i := range 100 {
			pod := api.Pod("default", fmt.Sprint("web-", i))
			require.Equal(t, v1.PodRunning, pod.Status.Phase, pod.Name)
			assert.Equal(t, i == 0, pod.Status.ContainerStatuses[0].RestartCount > 0, pod.Name)
		}
		assert.Len(t, api.List("resourceslices"), 10)
		interrupt()
		require.NoError(t, <-stopped)
		assert.Equal(t, "10 nodes are ready; interrupt to remove them\n", out.String())
		assert.Empty(t, api.List("nodes"))
		assert.Empty(t, api.List("pods"))
		assert.Empty(t, api.List("resourceslices"))
	})
}

func TestInvalidFlagsAreErrors(t *testing.T) {
	assert.EqualError(t, start(t.Context(), "", "hollow", 1, 0), "--kubeconfig is required")
	assert.ErrorContains(t, start(t.Context(), "nowhere", "hollow", 1, 0), "nowhere")
}
