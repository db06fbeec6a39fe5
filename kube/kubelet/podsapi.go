package kubelet

import (
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/podsapi"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/status"
)

// servesPods reports whether programs on the node are served the pods.
func servesPods(b base) bool { return config.Enabled(b.k, "PodsAPI") }

// newPodsAPI returns what serves the pods to programs on the node; nothing if its feature gate is
// disabled.
func newPodsAPI(b base, a *agent.Agent) ([]component, error) {
	if !servesPods(b) {
		return nil, nil
	}
	s, err := podsapi.New(podsapi.Config{
		Socket: filepath.Join(b.cfg.RootDir, "pods-api", "pods-api.sock"),
		Pods:   servedPods{a.Table(), a.Status()}, Called: b.metrics.remote.PodsAPI, Logger: b.logger,
	})
	if err != nil {
		return nil, err
	}
	return []component{b.serve("pods", s.Run), b.queues.pods.deliver(s.PodChanged)}, nil
}

// servedPods implements podsapi.Pods.
type servedPods struct {
	*podworker.Table
	*status.Manager
}

// notifyStatuses returns hooks that notify the pods API.
func notifyStatuses(b base) status.Hooks {
	if !servesPods(b) {
		return status.Hooks{}
	}
	return status.Hooks{Changed: func(i status.ChangedInfo) { b.queues.pods.add(i.Pod.UID) }}
}

// notifyPods returns next with notifications of the pods API.
func notifyPods(b base, next podsource.Sink) podsource.Sink {
	if !servesPods(b) {
		return next
	}
	return podsAPISink{next, &b.queues.pods}
}

// A podsAPISink notifies the pods API of changes that next has received.
type podsAPISink struct {
	podsource.Sink
	changed *queue[types.UID]
}

// AddPods implements podsource.Sink.
func (s podsAPISink) AddPods(pods []*v1.Pod) { s.Sink.AddPods(pods); s.notify(pods) }

// UpdatePods implements podsource.Sink.
func (s podsAPISink) UpdatePods(pods []*v1.Pod) { s.Sink.UpdatePods(pods); s.notify(pods) }

// RemovePods implements podsource.Sink.
func (s podsAPISink) RemovePods(pods []*v1.Pod) { s.Sink.RemovePods(pods); s.notify(pods) }

func (s podsAPISink) notify(pods []*v1.Pod) {
	for _, pod := range pods {
		s.changed.add(pod.UID)
	}
}
