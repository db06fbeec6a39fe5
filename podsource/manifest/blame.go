package manifest

import (
	"encoding/json"
	"maps"
	"slices"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// The cost of the search is bounded: a manifest with an error is decoded again after
// each change and each start.
const (
	blameBytes = 256 << 10
	blameTries = 100
)

// blame returns failure with the path of the field that made a well-formed manifest
// undecodable. The decoder does not report it: a quantity has no reference to its
// field, and lists have no indexes. In each list and map, a binary search finds the
// first item with which decoding fails in the same way, and continues inside it.
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
	// first returns the index of the item that fails, and leaves only that one in
	// place. use sets or clears an item.
	first := func(n int, use func(i int, keep bool)) (int, bool) {
		i := sort.Search(n, func(last int) bool {
			for i := range n {
				use(i, i <= last)
			}
			return fails()
		})
		for j := range n {
			use(j, j == i)
		}
		return i, i < n && fails()
	}
	var path *field.Path
	culprit := root
	for found := true; found; {
		found = false
		switch node := culprit.(type) {
		case map[string]any:
			whole := maps.Clone(node)
			keys := slices.Sorted(maps.Keys(whole))
			i, ok := first(len(keys), func(i int, keep bool) {
				node[keys[i]] = nil
				if keep {
					node[keys[i]] = whole[keys[i]]
				}
			})
			if ok {
				path, culprit, found = path.Child(keys[i]), whole[keys[i]], true
			} else {
				maps.Copy(node, whole)
			}
		case []any:
			whole := slices.Clone(node)
			i, ok := first(len(whole), func(i int, keep bool) {
				node[i] = nil
				if keep {
					node[i] = whole[i]
				}
			})
			if ok {
				path, culprit, found = path.Index(i), whole[i], true
			} else {
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
