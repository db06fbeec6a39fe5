package podwing

import (
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/podsapi"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/status"
)

// servesPods reports whether programs on the node are served the pods.
func servesPods(b stores.Base) bool { return config.Enabled(b.Configuration, "PodsAPI") }

// newPodsAPI returns what serves the pods to programs on the node; nothing if its feature gate is
// disabled.
func newPodsAPI(b stores.Base, a *agent.Agent) ([]stores.Component, error) {
	if !servesPods(b) {
		return nil, nil
	}
	s, err := podsapi.New(podsapi.Config{
		Socket: filepath.Join(b.Config.RootDir, "pods-api", "pods-api.sock"),
		Pods:   servedPods{a.Table(), a.Status()}, Called: b.Metrics.Remote.PodsAPI, Logger: b.Logger,
	})
	if err != nil {
		return nil, err
	}
	return []stores.Component{b.Serve("pods", s.Run), b.Queues.Pods.Deliver(s.PodChanged)}, nil
}

// servedPods implements podsapi.Pods.
type servedPods struct {
	*podworker.Table
	*status.Manager
}

// notifyStatuses returns hooks that notify the pods API.
func notifyStatuses(b stores.Base) status.Hooks {
	if !servesPods(b) {
		return status.Hooks{}
	}
	return status.Hooks{Changed: func(i status.ChangedInfo) { b.Queues.Pods.Add(i.Pod.UID) }}
}

// notifyPods returns next with notifications of the pods API.
func notifyPods(b stores.Base, next podsource.Sink) podsource.Sink {
	if !servesPods(b) {
		return next
	}
	return podsAPISink{next, &b.Queues.Pods}
}

// A podsAPISink notifies the pods API of changes that next has received.
type podsAPISink struct {
	podsource.Sink
	changed *stores.Queue[types.UID]
}

// AddPods implements podsource.Sink.
func (s podsAPISink) AddPods(pods []*v1.Pod) { s.Sink.AddPods(pods); s.notify(pods) }

// UpdatePods implements podsource.Sink.
func (s podsAPISink) UpdatePods(pods []*v1.Pod) { s.Sink.UpdatePods(pods); s.notify(pods) }

// RemovePods implements podsource.Sink.
func (s podsAPISink) RemovePods(pods []*v1.Pod) { s.Sink.RemovePods(pods); s.notify(pods) }

func (s podsAPISink) notify(pods []*v1.Pod) {
	for _, pod := range pods {
		s.changed.Add(pod.UID)
	}
}
