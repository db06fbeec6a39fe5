package client_test

import (
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
	"github.com/kubeparts/kubeparts/kube/client"
)

func TestNodesAreFollowed(t *testing.T) {
	node := func(name string, unschedulable bool) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.NodeSpec{Unschedulable: unschedulable}}
	}
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		api.Put(node("a", false), node("b", false))
		var saw []string
		nodes, err := client.NewNodes(client.NodesConfig{Client: connect(t, api).API, Observed: func(n *v1.Node, deleted bool) {
			saw = append(saw, fmt.Sprint(n.Name, " ", n.Spec.Unschedulable, " ", deleted))
		}})
		require.NoError(t, err)
		assert.Nil(t, nodes.Node("a"))
		running(t, nodes.Run)
		pass(time.Second)
		assert.ElementsMatch(t, []string{"a false false", "b false false"}, saw)
		assert.Equal(t, "a", nodes.Node("a").Name)

		saw = nil
		api.Put(node("a", true))
		api.Remove("nodes", "", "b")
		pass(time.Second)
		assert.Equal(t, []string{"a true false", "b false true"}, saw)
		assert.True(t, nodes.Node("a").Spec.Unschedulable)
		assert.Nil(t, nodes.Node("b"))

		saw = nil
		api.DropWatches()
		api.Remove("nodes", "", "a")
		api.Put(node("c", false))
		api.Compact()
		pass(time.Minute)
		assert.Equal(t, []string{"a true true", "c false false"}, saw)
		assert.EqualError(t, nodes.Run(context.Background()), "client: Nodes.Run was called before")
	})
	_, err := client.NewNodes(client.NodesConfig{})
	assert.ErrorContains(t, err, "NodesConfig.Client")
}
