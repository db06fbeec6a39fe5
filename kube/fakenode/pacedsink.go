package fakenode

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/client"
)

// statusWrites is the maximum number of pod statuses that all nodes write at the same time. An API
// server that receives those of thousands of new pods at once responds to none of them in time.
const statusWrites = 100

// A pacedSink limits the writes of all nodes together. The time of a request begins when it is
// sent.
type pacedSink struct {
	*client.Statuses
	writes chan struct{}
}

// UpdatePodStatus implements status.Sink.
func (s pacedSink) UpdatePodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error {
	select {
	case s.writes <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.writes }()
	return s.Statuses.UpdatePodStatus(ctx, pod, status)
}
