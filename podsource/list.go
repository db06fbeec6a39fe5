package podsource

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/kubeparts/kubeparts/internal/yamljson"
)

// The bounds of a list of pods. maxList is the kubelet's limit of an HTTP answer, in
// bytes; a list in YAML has those of one manifest, since parsing YAML costs far more.
const (
	maxList       = 10 << 20
	maxListValues = 10 * yamljson.MaxValues
)

// An item is one pod of a list: its manifest, and what distinguishes it from the
// others, "#namespace/name"; empty for a manifest that is no list.
type item struct {
	name string
	data []byte
}

// splitList returns the pods of a PodList, or a List (src-14); nil, and no error,
// if data is something else, such as a Pod. The items need not say what they are.
func splitList(data []byte) ([]item, error) {
	doc, err := toJSON(data)
	if err != nil {
		return nil, err
	}
	if err := yamljson.CheckJSON(doc, maxListValues); err != nil {
		return nil, err
	}
	var list struct {
		APIVersion any               `json:"apiVersion"`
		Kind       any               `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	// What is no list is for decode to judge.
	if kjson.UnmarshalCaseSensitivePreserveInts(doc, &list) != nil || list.Kind != "PodList" && list.Kind != "List" {
		return nil, nil
	}
	if list.APIVersion != "v1" {
		return nil, fmt.Errorf("apiVersion: %v: a %v has %q", list.APIVersion, list.Kind, "v1")
	}
	if n := len(list.Items); n > maxItems {
		return nil, field.TooMany(field.NewPath("items"), n, maxItems)
	}
	items := make([]item, 0, len(list.Items))
	for i, raw := range list.Items {
		if len(raw) > maxManifest {
			return nil, fmt.Errorf("items[%d]: %w", i, tooLarge(int64(len(raw))))
		}
		if err := yamljson.CheckJSON(raw, yamljson.MaxValues); err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		tree, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		pod, ok := tree.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d]: is no Pod but %s", i, shorten(string(raw)))
		}
		if strict, err := kjson.UnmarshalStrict(raw, new(any), kjson.DisallowDuplicateFields); err != nil || len(strict) > 0 {
			return nil, fmt.Errorf("items[%d]: %w", i, errors.Join(err, oneLine(strict)))
		}
		for key, value := range map[string]string{"apiVersion": "v1", "kind": "Pod"} {
			if pod[key] == nil {
				pod[key] = value
			}
		}
		data, err := json.Marshal(pod)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		items = append(items, item{nameOf(pod, i), data})
	}
	return items, nil
}

// nameOf returns by what an item is known from one answer to the next: its name,
// else its place.
func nameOf(pod map[string]any, i int) string {
	meta, _ := pod["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	if name == "" {
		return fmt.Sprintf("#[%d]", i)
	}
	if namespace == "" {
		namespace = "default"
	}
	return "#" + namespace + "/" + name
}
