package apitest

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
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
	"services":                   {"spec.clusterIP", "spec.type"},
	"replicationcontrollers":     {"status.replicas"},
	"replicasets":                {"status.replicas"},
	"jobs":                       {"status.successful"},
	"certificatesigningrequests": {"spec.signerName"},
	"clustertrustbundles":        {"spec.signerName"},
	"podcertificaterequests":     {"spec.signerName", "spec.podName", "spec.nodeName"},
	"resourceslices":             {"spec.nodeName", "spec.driver"},
}

// A matcher selects the objects of a list or a watch.
type matcher struct {
	labels labels.Selector
	fields fields.Selector
	all    bool // both are empty
}

var everything = &matcher{labels.Everything(), fields.Everything(), true}

// matcher parses the selectors of a list or a watch. A selector that the server cannot
// evaluate is a bad request.
func (r *request) matcher() (*matcher, error) {
	if r.Labels == "" && r.Selector == "" && r.Name == "" {
		return everything, nil
	}
	byLabel, err := labels.Parse(r.Labels)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(r.Selector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if r.gvk.Group == "events.k8s.io" {
		if byField, err = byField.Transform(storedEventField); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	for _, want := range byField.Requirements() {
		if !r.kind.selects(want.Field) {
			return nil, apierrors.NewBadRequest(r.kind.unselectable(want.Field))
		}
	}
	if r.Name != "" { // a watch of one object
		byField = fields.AndSelectors(byField, fields.OneTermEqualSelector("metadata.name", r.Name))
	}
	return &matcher{byLabel, byField, byLabel.Empty() && byField.Empty()}, nil
}

// storedEventField returns the field of core/v1 for one of events.k8s.io.
func storedEventField(field, value string) (string, string, error) {
	switch rest, isRegarding := strings.CutPrefix(field, "regarding."); {
	case isRegarding:
		return "involvedObject." + rest, value, nil
	case field == "reportingController":
		return "reportingComponent", value, nil
	case strings.HasPrefix(field, "involvedObject.") || field == "reportingComponent" || field == "source":
		return "", "", fmt.Errorf("field label not supported: %s", field)
	}
	return field, value, nil
}

// selects reports whether a field can be used in a selector.
func (k *kind) selects(field string) bool {
	switch {
	case field == "metadata.name", field == "metadata.namespace" && k.namespaced:
		return true
	case k.crd != nil:
		return slices.Contains(k.crd.selectable, field)
	}
	return k.scheme != nil && slices.Contains(selectable[k.plural], field)
}

// unselectable is the message for a field that cannot be used in a selector.
func (k *kind) unselectable(field string) string {
	if len(selectable[k.plural]) == 0 && k.scheme != nil {
		return fmt.Sprintf("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", field)
	}
	return "field label not supported: " + field
}

func (m *matcher) matches(o object) bool {
	if m.all {
		return true
	}
	for _, want := range m.fields.Requirements() {
		if (fieldOf(o, want.Field) == want.Value) == (want.Operator == selection.NotEquals) {
			return false
		}
	}
	return m.labels.Matches(labels.Set(o.GetLabels()))
}

// fieldOf returns the value of a field for selectors: "" if it is not set, "false" for a
// boolean and "0" for a number that is not set.
func fieldOf(o object, path string) string {
	switch path {
	case "metadata.name":
		return o.GetName()
	case "metadata.namespace":
		return o.GetNamespace()
	case "spec.nodeName":
		if pod, ok := o.(*v1.Pod); ok {
			return pod.Spec.NodeName
		}
	case "status.phase":
		if pod, ok := o.(*v1.Pod); ok {
			return string(pod.Status.Phase)
		}
	case "source":
		if event, ok := o.(*v1.Event); ok {
			return event.Source.Component
		}
	case "status.successful":
		path = "status.succeeded"
	}
	at, err := tree(o)
	if err != nil {
		return ""
	}
	switch value := valueAt(at, strings.Split(path, ".")); {
	case value != nil:
		return fmt.Sprint(value)
	case path == "spec.unschedulable" || path == "spec.hostNetwork":
		return "false"
	case path == "status.replicas" || path == "status.succeeded":
		return "0"
	}
	return ""
}

// valueAt returns the value at a path of a tree; nil if there is none.
func valueAt(tree any, path []string) any {
	for _, part := range path {
		branch, ok := tree.(map[string]any)
		if !ok {
			return nil
		}
		tree = branch[part]
	}
	return tree
}
