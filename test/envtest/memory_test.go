package envtest_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// The tests with an API server in memory: no programs, no network, and virtual time.
func TestTheControllerInVirtualTime(t *testing.T) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(newWorld(t)) })
		})
	}
}

func newWorld(t *testing.T) *world {
	config := new(apitest.Server).RESTConfig()
	nodes := fakenode.Start(t.Context(), t, config, newNodes)
	config.QPS = -1
	api, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	keep(t, api)
	return &world{t, api, nodes, "default"}
}

// keep runs the controller until the test ends.
func keep(t *testing.T, api kubernetes.Interface) {
	c, err := New(api)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-stopped)
	})
}
