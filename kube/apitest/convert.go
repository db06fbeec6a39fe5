package apitest

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// tree returns the JSON tree of an object, which the caller may change.
func tree(o runtime.Object) (map[string]any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.DeepCopy().Object, nil
	}
	t, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	gvk := o.GetObjectKind().GroupVersionKind()
	t["apiVersion"], t["kind"] = gvk.GroupVersion().String(), gvk.Kind
	return t, nil
}

// fromTree returns the object of a JSON tree, which it may keep. The tree must be of the
// version gvk; with strict, unknown fields are an error that runtime.IsStrictDecodingError
// reports, next to the object.
func (k *kind) fromTree(t map[string]any, gvk schema.GroupVersionKind, strict bool) (object, error) {
	if k.scheme == nil {
		u := &unstructured.Unstructured{Object: t}
		u.SetGroupVersionKind(gvk)
		return u, nil
	}
	made, err := k.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	o, ok := made.(object)
	if !ok {
		return nil, fmt.Errorf("%T has no metadata", made)
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(t, o, strict)
	if err != nil && !runtime.IsStrictDecodingError(err) {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o, err
}

// convert returns o in the version of gvk; o itself if it has that version. The versions of
// a kind are converted by the names of their fields in JSON; those of events and
// autoscalers, which differ, by a table.
func (k *kind) convert(o object, gvk schema.GroupVersionKind) (object, error) {
	from := o.GetObjectKind().GroupVersionKind()
	_, loose := o.(*unstructured.Unstructured)
	if from == gvk && loose == (k.scheme == nil) {
		return o, nil
	}
	if k.crd != nil && k.crd.extension != nil && from != gvk {
		converted, err := k.crd.extension.Convert(context.Background(), k.crd.source, o, gvk.GroupVersion())
		if err != nil {
			return nil, err
		}
		return converted.(object), nil
	}
	t, err := tree(o)
	if err != nil {
		return nil, err
	}
	switch {
	case from == gvk:
	case k.kind == "Event" && gvk.Group == "events.k8s.io":
		rename(t, newEventFields, false)
	case k.kind == "Event" && from.Group == "events.k8s.io":
		rename(t, newEventFields, true)
	case k.kind == "HorizontalPodAutoscaler" && gvk.Version == "v1":
		autoscalerToV1(t)
	case k.kind == "HorizontalPodAutoscaler" && from.Version == "v1":
		autoscalerFromV1(t)
	}
	t["apiVersion"], t["kind"] = gvk.GroupVersion().String(), gvk.Kind
	return k.fromTree(t, gvk, false)
}

// newEventFields are the names of core/v1's fields in events.k8s.io/v1.
var newEventFields = map[string]string{
	"involvedObject": "regarding", "message": "note", "reportingComponent": "reportingController",
	"source": "deprecatedSource", "firstTimestamp": "deprecatedFirstTimestamp",
	"lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount",
}

func rename(t map[string]any, names map[string]string, back bool) {
	for from, to := range names {
		if back {
			from, to = to, from
		}
		if value, ok := t[from]; ok {
			delete(t, from)
			t[to] = value
		}
	}
}

// otherMetrics is the annotation that keeps the metrics which autoscaling/v1 cannot express.
const otherMetrics = "autoscaling.alpha.kubernetes.io/metrics"

// autoscalerToV1 replaces the metrics by the target of the CPU utilization.
func autoscalerToV1(t map[string]any) {
	spec, _ := t["spec"].(map[string]any)
	var others []any
	metrics, _ := spec["metrics"].([]any)
	for _, m := range metrics {
		metric, _ := m.(map[string]any)
		name, _, _ := unstructured.NestedString(metric, "resource", "name")
		target, ok, _ := unstructured.NestedFieldNoCopy(metric, "resource", "target", "averageUtilization")
		if name == "cpu" && ok {
			spec["targetCPUUtilizationPercentage"] = target
		} else {
			others = append(others, m)
		}
	}
	delete(spec, "metrics")
	if data, err := json.Marshal(others); err == nil && len(others) > 0 {
		_ = unstructured.SetNestedField(t, string(data), "metadata", "annotations", otherMetrics)
	}
	if status, ok := t["status"].(map[string]any); ok {
		delete(status, "currentMetrics")
		delete(status, "conditions")
	}
}

func autoscalerFromV1(t map[string]any) {
	spec, _ := t["spec"].(map[string]any)
	var metrics []any
	if data, ok, _ := unstructured.NestedString(t, "metadata", "annotations", otherMetrics); ok {
		_ = json.Unmarshal([]byte(data), &metrics)
		unstructured.RemoveNestedField(t, "metadata", "annotations", otherMetrics)
	}
	if percent, ok := spec["targetCPUUtilizationPercentage"]; ok {
		delete(spec, "targetCPUUtilizationPercentage")
		metrics = append(metrics, map[string]any{"type": "Resource", "resource": map[string]any{
			"name": "cpu", "target": map[string]any{"type": "Utilization", "averageUtilization": percent},
		}})
	}
	if len(metrics) > 0 {
		spec["metrics"] = metrics
	}
	if status, ok := t["status"].(map[string]any); ok {
		delete(status, "currentCPUUtilizationPercentage")
	}
}

// setTree sets the fields of a typed object.
func setTree(o object, t map[string]any) {
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(t, o) // t was made of o
}
