package apitest

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// selectable are the fields that an API server accepts in a selector, in addition to
// metadata.name and metadata.namespace, by resource.
var selectable = map[string][]string{
	"pods": {
		"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
		"status.phase", "status.podIP", "status.nominatedNodeName",
	},
	"nodes":      {"spec.unschedulable"},
	"secrets":    {"type"},
	"namespaces": {"status.phase"},
	"events": {
		"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
		"involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
	},
	"certificatesigningrequests": {"spec.signerName"},
	"clustertrustbundles":        {"spec.signerName"},
}

// A selection selects the objects of a list or a watch.
type selection struct {
	labels labels.Selector
	fields fields.Selector
}

var everything = selection{labels.Everything(), fields.Everything()}

// selection parses the selectors of a list or a watch. A selector that the server
// cannot evaluate is a bad request.
func (r *request) selection() (selection, error) {
	byLabel, err := labels.Parse(r.Labels)
	if err != nil {
		return selection{}, apierrors.NewBadRequest(fmt.Sprintf("unable to parse labelSelector: %v", err))
	}
	byField, err := fields.ParseSelector(r.Selector)
	if err != nil {
		return selection{}, apierrors.NewBadRequest(fmt.Sprintf("unable to parse fieldSelector: %v", err))
	}
	for _, want := range byField.Requirements() {
		if want.Field != "metadata.name" && want.Field != "metadata.namespace" && !slices.Contains(selectable[r.Resource], want.Field) {
			return selection{}, apierrors.NewBadRequest("field label not supported: " + want.Field)
		}
	}
	return selection{byLabel, byField}, nil
}

func (s selection) matches(o object) bool {
	if o == nil || !s.labels.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	if s.fields.Empty() {
		return true
	}
	set := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	for _, want := range s.fields.Requirements() {
		if _, ok := set[want.Field]; !ok {
			set[want.Field] = fieldOf(o, want.Field)
		}
	}
	return s.fields.Matches(set)
}

// fieldOf returns the value of a field for selectors: "" if it is not set, "false" for a
// boolean.
func fieldOf(o object, path string) string {
	switch {
	case path == "spec.nodeName":
		if pod, ok := o.(*v1.Pod); ok {
			return pod.Spec.NodeName
		}
	case path == "source":
		if event, ok := o.(*v1.Event); ok {
			return event.Source.Component
		}
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return ""
	}
	var at any = tree
	for _, part := range strings.Split(path, ".") {
		branch, ok := at.(map[string]any)
		if !ok {
			break
		}
		at = branch[part]
	}
	if at == nil && (path == "spec.unschedulable" || path == "spec.hostNetwork") {
		return "false"
	}
	if at == nil {
		return ""
	}
	return fmt.Sprint(at)
}
