package kubelet

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/client/apitest"
	"github.com/kubeparts/kubeparts/kube/node"
)

// A node that can have volumes of CSI drivers is not ready before its CSINode is there.
func TestTheNodeWaitsForItsCSINode(t *testing.T) { // ns-10
	for name, tc := range map[string]struct {
		fault func(tries int32) apitest.Fault
		tries int32
	}{
		"made in time": {func(n int32) apitest.Fault {
			if n < 3 {
				return apitest.Fault{Code: http.StatusServiceUnavailable}
			}
			return apitest.Fault{}
		}, 3},
		"may not be made": {func(int32) apitest.Fault {
			return apitest.Fault{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var c *cluster
			var tries atomic.Int32
			api := &apitest.Server{}
			api.Fault = func(call apitest.Call) apitest.Fault {
				if call.Resource != "csinodes" || call.Verb != "get" {
					return apitest.Fault{}
				}
				require.ErrorIs(t, c.storage.Err(), errNoCSINode)
				return tc.fault(tries.Add(1))
			}
			api.Put(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", UID: "uid"}})
			config := api.RESTConfig()
			clients, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			c = &cluster{conn: &client.Connection{API: clients}, spec: node.Spec{Name: "node"}, logger: slog.New(slog.DiscardHandler), known: make(chan struct{})}
			close(c.known)
			c.waitForCSINode()
			require.Len(t, c.more, 1)
			require.ErrorIs(t, c.storage.Err(), errNoCSINode)
			require.NoError(t, c.more[0](t.Context()))
			require.NoError(t, c.storage.Err())
			assert.Equal(t, tc.tries, tries.Load())
			if name == "made in time" {
				assert.NotNil(t, api.Get("csinodes", "", "node"))
			}
		})
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	c := &cluster{known: make(chan struct{})}
	c.waitForCSINode()
	require.NoError(t, c.more[0](stopped))
	require.EqualError(t, c.storage.Err(), "CSINode is not yet initialized")
	(*cluster)(nil).waitForCSINode() // nobody waits
}

func TestANodeWithoutCgroupsSaysSo(t *testing.T) { // ns-11
	assert.Equal(t, "pods have no cgroups, so that nothing keeps them to their limits", (&podNode{}).warning())
}
