package machine

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	k8stypes "k8s.io/apimachinery/pkg/types"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime"
)

// missingForUpdate returns the features that the update of a pod requires and the node does not
// declare, separated by commas; empty if there are none.
func (d DeclaredFeatures) missingForUpdate(from, to *v1.Pod) string {
	// Init containers of a pod of the API cannot be added or removed. The features compare them
	// by index.
	if len(from.Spec.InitContainers) != len(to.Spec.InitContainers) {
		return ""
	}
	required, err := ndf.DefaultFramework.InferForPodUpdate(
		&ndf.PodInfo{Spec: &from.Spec, Status: &from.Status}, &ndf.PodInfo{Spec: &to.Spec, Status: &to.Status}, d.version)
	if err != nil {
		return ""
	}
	match, err := ndf.DefaultFramework.MatchNodeFeatureSet(required, d.set)
	if err != nil || match.IsMatch {
		return ""
	}
	return strings.Join(match.UnsatisfiedRequirements, ", ")
}

// Sink returns next, with an event for each update that requires a feature that the node does not
// declare (rule sl-22). The update is delivered nevertheless.
func (d DeclaredFeatures) Sink(next podsource.Sink, record func(runtime.Event)) podsource.Sink {
	return &declaredSink{Sink: next, features: d, record: record, Pods: map[k8stypes.UID]*v1.Pod{}}
}

// A declaredSink is called by one goroutine at a time, as each Sink.
type declaredSink struct {
	podsource.Sink
	features DeclaredFeatures
	record   func(runtime.Event)
	Pods     map[k8stypes.UID]*v1.Pod
}

// AddPods implements podsource.Sink.
func (s *declaredSink) AddPods(pods []*v1.Pod) {
	for _, pod := range pods {
		s.Pods[pod.UID] = pod
	}
	s.Sink.AddPods(pods)
}

// UpdatePods implements podsource.Sink.
func (s *declaredSink) UpdatePods(pods []*v1.Pod) {
	for _, pod := range pods {
		if from := s.Pods[pod.UID]; from != nil {
			if missing := s.features.missingForUpdate(from, pod); missing != "" {
				s.record(runtime.Event{
					Object: runtime.PodRef(pod), Type: v1.EventTypeWarning, Reason: "FailedNodeDeclaredFeaturesCheck",
					Message: "Pod requires node features that are not available: " + missing,
				})
			}
		}
		s.Pods[pod.UID] = pod
	}
	s.Sink.UpdatePods(pods)
}

// RemovePods implements podsource.Sink.
func (s *declaredSink) RemovePods(pods []*v1.Pod) {
	for _, pod := range pods {
		delete(s.Pods, pod.UID)
	}
	s.Sink.RemovePods(pods)
}
