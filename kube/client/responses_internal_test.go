package client

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A response is used until the watch has delivered it, and kept no longer.
func TestResponsesAreKeptUntilTheWatchHasDeliveredThem(t *testing.T) {
	client, err := kubernetes.NewForConfig(&rest.Config{})
	require.NoError(t, err)
	pods, err := NewPods(PodsConfig{Client: client, NodeName: "n"})
	require.NoError(t, err)
	s, err := NewStatuses(StatusesConfig{Client: client, Pods: pods})
	require.NoError(t, err)
	pods.replace([]*v1.Pod{version("4")})
	e, err := s.acquire(t.Context(), version("4"))
	require.NoError(t, err)
	e.pod = version("4")
	s.keepResponse(e, version("5"))
	s.dropResponse(e)
	require.NotNil(t, e.response)
	pods.put(version("5"))
	s.dropResponses()
	assert.NotNil(t, e.response, "the entry is in use")
	s.release(e)

	pods.put(version("4"))
	s.dropResponses()
	assert.Equal(t, "5", s.target(e).ResourceVersion)
	pods.put(version("5"))
	s.dropResponses()
	assert.Nil(t, e.response)
	assert.Empty(t, s.answered)
	assert.Equal(t, "5", s.target(e).ResourceVersion)

	s.keepResponse(e, version("6"))
	pods.drop(version("5"))
	s.dropResponses()
	assert.Nil(t, e.response, "the pod was deleted")
}
