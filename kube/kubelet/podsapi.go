package kubelet

import (
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent/podsapi"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/status"
)

// A podsAPI serves the pods to programs on the node. A nil *podsAPI serves nothing.
type podsAPI struct {
	*podsapi.Server
	base base
}

// newPodsAPI constructs the pods API; nil if its feature gate is disabled.
func newPodsAPI(b base) (*podsAPI, error) {
	if !config.Enabled(b.k, "PodsAPI") {
		return nil, nil
	}
	s, err := podsapi.New(podsapi.Config{
		Socket: filepath.Join(b.cfg.RootDir, "pods-api", "pods-api.sock"),
		Pods:   servedPods{b.pods}, Called: b.metrics.remote.PodsAPI, Logger: b.logger,
	})
	return &podsAPI{s, b}, err
}

// servedPods implements podsapi.Pods.
type servedPods struct{ pods }

func (p servedPods) Status(uid types.UID) (v1.PodStatus, bool) {
	return p.agent.get().Status().Status(uid)
}

// status returns the hooks of the status manager with one that notifies watches.
func (p *podsAPI) status(h status.Hooks) status.Hooks {
	if p == nil {
		return h
	}
	count := h.Changed
	h.Changed = func(i status.ChangedInfo) { count(i); p.PodChanged(i.Pod.UID) }
	return h
}

// sink returns next with notifications of watches.
func (p *podsAPI) sink(next podsource.Sink) podsource.Sink {
	if p == nil {
		return next
	}
	return podsAPISink{next, p}
}

func (p *podsAPI) components() []component {
	if p == nil {
		return nil
	}
	return []component{p.base.serve("pods", p.Run)}
}

// A podsAPISink notifies watches of changes that next has received.
type podsAPISink struct {
	podsource.Sink
	api *podsAPI
}

// AddPods implements podsource.Sink.
func (s podsAPISink) AddPods(pods []*v1.Pod) { s.Sink.AddPods(pods); s.changed(pods) }

// UpdatePods implements podsource.Sink.
func (s podsAPISink) UpdatePods(pods []*v1.Pod) { s.Sink.UpdatePods(pods); s.changed(pods) }

// RemovePods implements podsource.Sink.
func (s podsAPISink) RemovePods(pods []*v1.Pod) { s.Sink.RemovePods(pods); s.changed(pods) }

func (s podsAPISink) changed(pods []*v1.Pod) {
	for _, pod := range pods {
		s.api.PodChanged(pod.UID)
	}
}
