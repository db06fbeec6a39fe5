package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime"
)

// A recordedSink records the delivered pods.
type recordedSink struct {
	podsource.Sink
	calls []string
}

func (s *recordedSink) AddPods(pods []*v1.Pod)    { s.calls = append(s.calls, "add "+pods[0].Name) }
func (s *recordedSink) UpdatePods(pods []*v1.Pod) { s.calls = append(s.calls, "update "+pods[0].Name) }
func (s *recordedSink) RemovePods(pods []*v1.Pod) { s.calls = append(s.calls, "remove "+pods[0].Name) }

func TestAnUpdateThatRequiresAnotherFeature(t *testing.T) { // sl-22
	cpu := func(pod, init string) *v1.Pod {
		of := func(q string) v1.ResourceList { return v1.ResourceList{v1.ResourceCPU: resource.MustParse(q)} }
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod", UID: "u"}, Spec: v1.PodSpec{
			Resources:      &v1.ResourceRequirements{Requests: of(pod)},
			InitContainers: []v1.Container{{Name: "init", Resources: v1.ResourceRequirements{Requests: of(init)}}},
		}}
	}
	without := cpu("2", "2")
	without.Spec.InitContainers = nil
	deleted := cpu("1", "1")
	deleted.DeletionTimestamp = new(metav1.Now())
	for name, c := range map[string]struct {
		resize bool
		to     *v1.Pod
		want   string
	}{
		"nothing":                   {to: cpu("1", "1")},
		"deleted":                   {to: deleted},
		"pod-level resources":       {to: cpu("2", "1"), want: "InPlacePodLevelResourcesVerticalScaling"},
		"both":                      {to: cpu("2", "2"), want: "InPlacePodLevelResourcesVerticalScaling, InPlacePodVerticalScalingInitContainers"},
		"a node that resizes":       {resize: true, to: cpu("2", "2")},
		"init containers are fewer": {to: without},
	} {
		t.Run(name, func(t *testing.T) {
			var events []string
			next := new(recordedSink)
			s := declareFeatures(enabledIn(nil), c.resize, runtime.Features{}).Sink(next, func(e runtime.Event) {
				events = append(events, e.Object.Namespace+"/"+e.Object.Name+" "+e.Type+" "+e.Reason+" "+e.Message)
			})
			s.UpdatePods([]*v1.Pod{c.to}) // of an unknown pod
			s.RemovePods([]*v1.Pod{c.to})
			s.AddPods([]*v1.Pod{cpu("1", "1")})
			s.UpdatePods([]*v1.Pod{c.to})
			s.UpdatePods([]*v1.Pod{c.to}) // has the feature already
			var want []string
			if c.want != "" {
				want = []string{"prod/web Warning FailedNodeDeclaredFeaturesCheck Pod requires node features that are not available: " + c.want}
			}
			assert.Equal(t, want, events)
			assert.Equal(t, []string{"update web", "remove web", "add web", "update web", "update web"}, next.calls)
			s.RemovePods([]*v1.Pod{c.to})
			assert.Empty(t, s.(*declaredSink).Pods)
		})
	}
}
