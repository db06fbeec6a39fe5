//go:build !windows

// The envtest of controller-runtime does not compile on Windows.

// Package envtest_test runs pods on the API server of an envtest. KUBEBUILDER_ASSETS names
// the directory of kube-apiserver and etcd, as setup-envtest prints it.
package envtest_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

func TestAPodRestartsAfterItsContainerIsKilled(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS does not name the directory of kube-apiserver and etcd")
	}
	env := new(envtest.Environment)
	cfg, err := env.Start()
	require.NoError(t, err)
	// The order of shutdown: controllers, nodes, API server. An API server waits for open
	// watches, so that one that is stopped first reports a timeout. Cleanups run last to
	// first: register Stop before fakenode.Start, which registers the nodes'. With
	// "defer env.Stop()" in place of the Cleanup, "defer nodes.Stop()" must follow it.
	t.Cleanup(func() { assert.NoError(t, env.Stop()) })
	nodes := fakenode.Start(t.Context(), t, cfg, fakenode.Config{Backoff: -1})

	c, err := client.New(cfg, client.Options{})
	require.NoError(t, err)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
	}
	require.NoError(t, c.Create(t.Context(), pod))
	ready := func(restarts int32) func() bool {
		return func() bool {
			err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)
			return err == nil && len(pod.Status.ContainerStatuses) == 1 &&
				pod.Status.ContainerStatuses[0].Ready && pod.Status.ContainerStatuses[0].RestartCount == restarts
		}
	}
	require.Eventually(t, ready(0), time.Minute, 50*time.Millisecond)
	require.NoError(t, nodes.Exit("default", "web", "main", 137))
	require.Eventually(t, ready(1), time.Minute, 50*time.Millisecond)
}
