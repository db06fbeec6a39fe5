package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/hollow"
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
	for args, want := range map[string]string{
		"":                     "--kubeconfig: ",
		"--kubeconfig=nowhere": "nowhere",
		"--group=a":            "require --adopt",
		"--for=1s":             "require --adopt",
		"--unknown":            "unknown",
	} {
		assert.ErrorContains(t, start(t.Context(), strings.Fields(args), io.Discard), want, args)
	}
	for want, a := range map[string]adoption{
		"--behaviors: open nowhere": {behaviors: "nowhere"},
		"--ip: ParseAddr":           {ip: "none"},
		"read the CA of clients":    {ip: "127.0.0.1"},
		"requires --namespace":      {shard: hollow.Shard{Group: "a"}},
		"Config.Select.Labels":      {selects: hollow.Selector{Labels: "("}},
	} {
		assert.ErrorContains(t, adopt(t.Context(), new(apitest.Server).RESTConfig(), a, io.Discard), want)
	}
}

// The manifests of deploy/hollow have these flags and this file.
func TestNodesOfOthersAreRunForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		api.Put(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}})
		api.Put(&v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       v1.PodSpec{NodeName: "theirs", Containers: []v1.Container{{Name: "main", Image: "web"}}},
		})
		a := adoption{
			behaviors: "../../deploy/hollow/base/behaviors.yaml", length: time.Minute,
			shard: hollow.Shard{Group: "hollow", Namespace: "hollow", Identity: "hollow-0"},
		}
		var out bytes.Buffer
		require.NoError(t, adopt(t.Context(), api.RESTConfig(), a, &out))
		assert.Equal(t, v1.PodRunning, api.Pod("default", "web").Status.Phase)
		assert.NotNil(t, api.Get("nodes", "", "theirs"), "it is left to its creator")
		assert.NotContains(t, out.String(), "WARN")
		assert.NotContains(t, out.String(), "ERROR")
	})
}
