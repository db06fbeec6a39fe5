package client_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubeparts/kubeparts/kube/client"
)

func TestASecondRunIsAnError(t *testing.T) {
	api := fake.NewClientset()
	feed, err := client.NewFeed(client.FeedConfig{Client: api})
	require.NoError(t, err)
	events, err := client.NewEvents(client.EventsConfig{Client: api, NodeName: "n1"})
	require.NoError(t, err)
	objects, err := client.NewObjects(client.ObjectsConfig{Client: api})
	require.NoError(t, err)
	pods, err := client.NewPods(client.PodsConfig{Client: api, NodeName: "n1"})
	require.NoError(t, err)
	statuses, err := client.NewStatuses(client.StatusesConfig{Client: api, Pods: pods})
	require.NoError(t, err)
	certificates, err := client.NewPodCertificates(client.PodCertificatesConfig{
		Client: api, NodeName: "n1", Node: func() (metav1.OwnerReference, bool) { return metav1.OwnerReference{}, false },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, run := range map[string]func(context.Context) error{
		"Feed": feed.Run, "Events": events.Run, "Objects": objects.Run, "Statuses": statuses.Run, "PodCertificates": certificates.Run,
	} {
		require.NoError(t, run(ctx), name)
		assert.EqualError(t, run(ctx), "client: "+name+".Run was called before")
	}
}
