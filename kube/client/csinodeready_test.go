package client_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
)

// A node that can have CSI volumes is not ready before its CSINode exists.
func TestCSINodeInit(t *testing.T) { // ns-10
	for name, tc := range map[string]struct {
		fault    apitest.Fault // of the first attempts
		attempts int32
		created  bool
	}{
		"retried":   {apitest.Fault{Code: http.StatusServiceUnavailable}, 3, true},
		"forbidden": {apitest.Fault{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var attempts, changes atomic.Int32
				var c *client.CSINodeInit
				api := &apitest.Server{}
				api.Fault = func(call apitest.Call) apitest.Fault {
					if call.Resource != "csinodes" || call.Verb != "get" {
						return apitest.Fault{}
					}
					assert.ErrorIs(t, c.Err(), client.ErrNoCSINode)
					if attempts.Add(1) == 3 {
						return apitest.Fault{}
					}
					return tc.fault
				}
				api.Put(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", UID: "uid"}})
				conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
				require.NoError(t, err)
				registered := make(chan struct{})
				close(registered)
				c = &client.CSINodeInit{
					CSINode:    client.CSINode{Client: conn.API, NodeName: "node"},
					Registered: registered, Changed: func() { changes.Add(1) }, Logger: slog.New(slog.DiscardHandler),
				}
				assert.Equal(t, client.ErrNoCSINode, c.Err())
				require.NoError(t, c.Run(t.Context()))
				require.NoError(t, c.Err(), "an agent that must not create it runs without CSI drivers")
				assert.Equal(t, tc.attempts, attempts.Load())
				assert.EqualValues(t, 1, changes.Load())
				assert.Equal(t, tc.created, api.Get("csinodes", "", "node") != nil)
			})
		})
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	c := &client.CSINodeInit{Registered: make(chan struct{})}
	require.NoError(t, c.Run(stopped))
	assert.EqualError(t, c.Err(), "CSINode is not yet initialized")
}
