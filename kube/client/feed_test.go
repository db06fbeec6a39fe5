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

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
)

// podOn returns a pod that is bound to a node; unbound if node is "".
func podOn(name, node string) *v1.Pod {
	pod := newPod(name)
	pod.Spec.NodeName = node
	return pod
}

func TestOneWatchServesManyNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		api.Put(podOn("a", "n1"), podOn("b", "n2"), podOn("free", ""))
		var saw []string
		feed, err := client.NewFeed(client.FeedConfig{Client: connect(t, api).API, Observed: func(pod *v1.Pod, gone bool) {
			saw = append(saw, fmt.Sprint(pod.Name, " ", pod.Spec.NodeName, " ", gone))
		}})
		require.NoError(t, err)
		takers := map[string]*taker{"n1": {}, "n2": {}, "n3": {}}
		for name, taken := range takers {
			pods, err := client.NewPods(client.PodsConfig{Feed: feed, NodeName: name})
			require.NoError(t, err)
			running(t, func(ctx context.Context) error { return pods.Run(ctx, taken.set) })
		}
		pass(time.Second)
		assert.Zero(t, takers["n1"].count(), "nothing is delivered before the first list")
		running(t, feed.Run)
		pass(time.Second)
		last := func(name string) int { return len(takers[name].last()) }
		assert.Equal(t, 1, takers["n3"].count(), "a node without pods gets an empty set")
		assert.Equal(t, []int{1, 1, 0}, []int{last("n1"), last("n2"), last("n3")})
		assert.Equal(t, 1, api.Watches("pods"))
		assert.ElementsMatch(t, []string{"a n1 false", "b n2 false", "free  false"}, saw)
		before := takers["n2"].count()

		saw = nil
		api.Put(podOn("free", "n1"))
		api.Remove("pods", "prod", "a")
		pass(time.Second)
		assert.Equal(t, 1, last("n1"))
		assert.Contains(t, takers["n1"].last()[0], "free")
		assert.Equal(t, []string{"free n1 false", "a n1 true"}, saw)
		assert.Equal(t, before, takers["n2"].count(), "other nodes are not notified")

		// What happened while the watch was away and history is forgotten.
		saw = nil
		api.DropWatches()
		api.Remove("pods", "prod", "b")
		api.Put(podOn("c", "n3"))
		api.Compact()
		pass(time.Minute)
		assert.Equal(t, []int{1, 0, 1}, []int{last("n1"), last("n2"), last("n3")})
		assert.Contains(t, saw, "b n2 true")
		assert.Contains(t, saw, "c n3 false")
		all, synced := feed.Pods()
		assert.True(t, synced)
		assert.Len(t, all, 2)

		// A late subscriber gets the current set.
		late, err := client.NewPods(client.PodsConfig{Feed: feed, NodeName: "n1"})
		require.NoError(t, err)
		received := new(taker)
		running(t, func(ctx context.Context) error { return late.Run(ctx, received.set) })
		pass(time.Second)
		assert.Len(t, received.last(), 1)
	})
	_, err := client.NewFeed(client.FeedConfig{})
	assert.ErrorContains(t, err, "FeedConfig.Client")
}
