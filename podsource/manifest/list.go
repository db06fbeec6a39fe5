package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/kubeparts/kubeparts/internal/yamljson"
)

// MaxListBytes is the largest list of pods, in bytes: the kubelet's limit of an HTTP
// response. A list in YAML is limited to [MaxBytes], because parsing YAML costs far more.
const MaxListBytes = 10 << 20

const maxListValues = 10 * yamljson.MaxValues

// An Item is the manifest of one pod of a list.
type Item struct {
	// Name identifies the item in later versions of the list: "#namespace/name", or
	// its index if it has no name. Empty if the manifest is not a list.
	Name string
	Data []byte
}

// Split returns the manifests in data, which is a PodList, a List or a single
// manifest. The items of a list may omit apiVersion and kind. The cost is bounded: a
// list with more than 1,000,000 values or 10,000 items is an error, and so is an item
// that exceeds the limits of [Decode]. The items are not decoded otherwise.
func Split(data []byte) ([]Item, error) {
	list, err := splitList(data)
	if err != nil || list != nil {
		return list, err
	}
	return []Item{{Data: bytes.Clone(data)}}, nil
}

// splitList returns nil without an error if data is not a list.
func splitList(data []byte) ([]Item, error) {
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
	// Decode returns the error for other documents.
	if kjson.UnmarshalCaseSensitivePreserveInts(doc, &list) != nil || list.Kind != "PodList" && list.Kind != "List" {
		return nil, nil
	}
	if list.APIVersion != "v1" {
		return nil, fmt.Errorf("apiVersion: %v: a %v has %q", list.APIVersion, list.Kind, "v1")
	}
	if n := len(list.Items); n > maxItems {
		return nil, field.TooMany(field.NewPath("items"), n, maxItems)
	}
	items := make([]Item, 0, len(list.Items))
	for i, raw := range list.Items {
		if len(raw) > MaxBytes {
			return nil, fmt.Errorf("items[%d]: %w", i, tooLarge(len(raw)))
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
		items = append(items, Item{nameOf(pod, i), data})
	}
	return items, nil
}

// nameOf returns Item.Name.
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
