package podsource

import (
	"encoding/json"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// What the search for a culprit may cost: a refused manifest is read again and
// again, until someone mends it.
const (
	blameBytes = 256 << 10
	blameTries = 500
)

// blame finds the field that made a well-formed manifest undecodable. The
// decoder does not tell: a quantity knows nothing of the field that it is in,
// and lists have no indexes. So each part is tried alone, and in the first one
// that fails in the same way, the search goes on.
func blame(manifest []byte, failure error) error {
	root, err := parse(manifest)
	if err != nil || len(manifest) > blameBytes {
		return failure
	}
	tries := 0
	fails := func() bool {
		if tries++; tries > blameTries {
			return false
		}
		data, err := json.Marshal(root)
		if err != nil {
			return false
		}
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, new(v1.Pod))
		return err != nil && err.Error() == failure.Error()
	}
	var path *field.Path
	culprit := root
	for found := true; found; {
		found = false
		switch node := culprit.(type) {
		case map[string]any:
			whole := maps.Clone(node)
			for key := range node {
				node[key] = nil
			}
			for _, key := range slices.Sorted(maps.Keys(whole)) {
				if node[key] = whole[key]; fails() {
					path, culprit, found = path.Child(key), whole[key], true
					break
				}
				node[key] = nil
			}
			if !found {
				maps.Copy(node, whole)
			}
		case []any:
			whole := slices.Clone(node)
			clear(node)
			for i := range whole {
				if node[i] = whole[i]; fails() {
					path, culprit, found = path.Index(i), whole[i], true
					break
				}
				node[i] = nil
			}
			if !found {
				copy(node, whole)
			}
		}
	}
	if path == nil {
		return failure
	}
	value, ok := culprit.(string)
	if !ok {
		data, err := json.Marshal(culprit)
		if err != nil {
			return failure
		}
		value = string(data)
	}
	return field.Invalid(path, shorten(value), failure.Error())
}
