package kubelet

import (
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/status"
)

// A snapshot checkpoints the statuses of a standalone kubelet for the next process. With a
// cluster, where the API server has them, it is nil.
type snapshot struct{ *status.Snapshot }

func newSnapshot(b base, c *cluster) (*snapshot, error) {
	if c != nil {
		return nil, nil
	}
	s, unreadable, err := status.OpenSnapshot(filepath.Join(b.cfg.RootDir, "statuses"))
	for _, err := range unreadable {
		b.logger.Warn("Failed to read the status of a pod; it is lost", "err", err)
	}
	return &snapshot{s}, err
}

// earlier returns the status of a pod from an earlier process, unless the pod was evicted
// or rejected: a static pod is admitted again by the next process.
func (s *snapshot) earlier(uid types.UID) (v1.PodStatus, bool) {
	if s == nil {
		return v1.PodStatus{}, false
	}
	pod, ok := s.Status(uid)
	return pod, ok && (pod.Phase != v1.PodFailed || pod.Reason == "")
}

// newSink returns the sink of statuses: the cluster or the snapshot, and that of the
// Config.
func newSink(b base, c *cluster, s *snapshot) status.Sink {
	var sink status.Sink
	if c != nil {
		sink = c.status
	} else {
		sink = s
	}
	if b.cfg.Sink != nil {
		sink = status.Tee(b.cfg.Sink, sink)
	}
	return sink
}
