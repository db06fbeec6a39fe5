package trace

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A Trace is the history of objects of a cluster.
type Trace struct {
	Events []Event // in the order of time

	// Lifetimes are how long the pods of an object ran until they terminated, in the order of
	// their starts.
	Lifetimes map[Owner][]time.Duration
}

// An Event is what happened at one time.
type Event struct {
	At               time.Duration // since the start of the trace
	Applied, Deleted []*unstructured.Unstructured
}

// An Owner names an object that owns pods. A pod without an owner is its own.
type Owner struct {
	APIVersion, Kind, Namespace, Name string
}

// Length returns the time of the last event.
func (t *Trace) Length() time.Duration {
	if len(t.Events) == 0 {
		return 0
	}
	return t.Events[len(t.Events)-1].At
}

// SetBehaviors sets an annotation of pods and pod templates so that containers exit with 0 after
// the median of the lifetimes of the object, as with fakenode.Annotation. An object without
// lifetimes, a pod that has the annotation, and a pod whose containers are always restarted are
// left as they are: pods of a Deployment end when they are deleted.
func (t *Trace) SetBehaviors(annotation string) {
	for _, e := range t.Events {
		for _, o := range e.Applied {
			lifetimes := slices.Sorted(slices.Values(t.Lifetimes[ownerOf(o)]))
			pod := template(o)
			if len(lifetimes) == 0 || pod == nil {
				continue
			}
			if policy, _, _ := unstructured.NestedString(pod, "spec", "restartPolicy"); policy == "" || policy == "Always" {
				continue
			}
			if _, ok, _ := unstructured.NestedString(pod, "metadata", "annotations", annotation); ok {
				continue
			}
			b := fake.Behavior{Exit: &fake.Exit{After: lifetimes[len(lifetimes)/2]}}
			child(child(pod, "metadata"), "annotations")[annotation] = b.String()
		}
	}
}

// child returns a field that is an object, which it sets if there is none.
func child(o map[string]any, field string) map[string]any {
	c, ok := o[field].(map[string]any)
	if !ok {
		c = map[string]any{}
		o[field] = c
	}
	return c
}

func ownerOf(o *unstructured.Unstructured) Owner {
	return Owner{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}
}

// template returns the pod template of an object, or a pod itself; nil if it has none.
func template(o *unstructured.Unstructured) map[string]any {
	if o.GetKind() == "Pod" {
		return o.Object
	}
	for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}} {
		if field, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...); field != nil {
			pod, _ := field.(map[string]any)
			return pod
		}
	}
	return nil
}
