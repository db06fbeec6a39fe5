package stores

import (
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/status"
)

// A Snapshot checkpoints the statuses of a standalone kubelet for the next process. With a
// cluster, where the API server has them, it is nil.
type Snapshot struct{ *status.Snapshot }

func newSnapshot(b Base, c *Cluster) (*Snapshot, error) {
	if c != nil {
		return nil, nil
	}
	s, unreadable, err := status.OpenSnapshot(filepath.Join(b.Config.RootDir, "statuses"))
	for _, err := range unreadable {
		b.Logger.Warn("Failed to read the status of a pod; it is lost", "err", err)
	}
	return &Snapshot{s}, err
}

// Earlier returns the status of a pod from an earlier process, unless the pod was evicted
// or rejected: a static pod is admitted again by the next process.
func (s *Snapshot) Earlier(uid types.UID) (v1.PodStatus, bool) {
	if s == nil {
		return v1.PodStatus{}, false
	}
	pod, ok := s.Status(uid)
	return pod, ok && (pod.Phase != v1.PodFailed || pod.Reason == "")
}

// NewSink returns the sink of statuses: the cluster or the snapshot, and that of the
// Config.
func NewSink(b Base, c *Cluster, s *Snapshot) status.Sink {
	var sink status.Sink
	if c != nil {
		sink = c.status
	} else {
		sink = s
	}
	if b.Config.Sink != nil {
		sink = status.Tee(b.Config.Sink, sink)
	}
	return sink
}
