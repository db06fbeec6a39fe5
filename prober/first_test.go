package prober_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/prober"
)

// The components of an agent start concurrently, so that a container may start before
// Run is called. It is not one of an earlier agent, whose first probe runs at any time
// within the period.
func TestAContainerThatStartedBeforeRunIsProbedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, err := prober.New(prober.Config{
			Handlers: prober.Handlers{Exec: n, HTTPGet: n, TCPSocket: n, GRPC: n}, Status: n.status, Schedule: prober.Schedule{Rand: func() float64 { return 0.9 }},
		})
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
		n.starts("1", "web", "id")
		m.Add(pod("1", container("web", "R", func(*v1.Probe) {})))
		time.Sleep(time.Millisecond)
		defer run(t, m)()
		assert.Len(t, n.take(&n.runs), 1)
	})
}
