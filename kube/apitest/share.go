package apitest

import (
	"encoding/binary"
	"maps"
	"math"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A sharer replaces equal parts of JSON trees by one of them. Definitions of custom resources
// repeat their schemas: those of a pod template are in many fields of each version. The
// result must not be changed.
type sharer struct {
	ids     map[string]uint64 // of maps and lists, by their content, in which parts are ids
	parts   []any             // by id
	strings map[string]string
	key     []byte // of the parts that are being visited
}

func newSharer() *sharer { return &sharer{ids: map[string]uint64{}, strings: map[string]string{}} }

// tree returns a tree equal to t.
func (s *sharer) tree(t any) any {
	out := s.value(t)
	s.key = s.key[:0]
	return out
}

// value returns a value equal to v, and appends its key.
func (s *sharer) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out, start := make(map[string]any, len(v)), len(s.key)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			name = s.text(name)
			out[name] = s.value(v[name])
		}
		return s.part('m', out, start)
	case []any:
		out, start := make([]any, len(v)), len(s.key)
		for i := range v {
			out[i] = s.value(v[i])
		}
		return s.part('l', out, start)
	case string:
		return s.text(v)
	case int64:
		s.key = binary.AppendVarint(append(s.key, 'i'), v)
	case float64:
		s.key = binary.AppendUvarint(append(s.key, 'f'), math.Float64bits(v))
	case bool:
		s.key = append(s.key, 'b', 0)
		if v {
			s.key[len(s.key)-1] = 1
		}
	case nil:
		s.key = append(s.key, 'n')
	default: // not of JSON
		s.key = binary.AppendUvarint(append(s.key, 'x'), uint64(len(s.parts)))
		s.parts = append(s.parts, v)
	}
	return v
}

// text returns a string equal to v, and appends its key.
func (s *sharer) text(v string) string {
	s.key = append(binary.AppendUvarint(append(s.key, 's'), uint64(len(v))), v...)
	if known, ok := s.strings[v]; ok {
		return known
	}
	s.strings[v] = v
	return v
}

// part returns the first part that is equal to v, whose key begins at start, and replaces that
// key by the id of the part.
func (s *sharer) part(kind byte, v any, start int) any {
	s.key = append(s.key, kind)
	id, ok := s.ids[string(s.key[start:])]
	if !ok {
		id = uint64(len(s.parts))
		s.ids[string(s.key[start:])] = id
		s.parts = append(s.parts, v)
	}
	s.key = binary.AppendUvarint(append(s.key[:start], 'p'), id)
	return s.parts[id]
}

// shareSchemas makes a definition that is to be stored share the equal parts of its schemas, or
// the spec of the stored one if that is equal. It changes only next itself.
func shareSchemas(k *kind, was *item, next object) {
	u, ok := next.(*unstructured.Unstructured)
	if !ok || k.resource() != crdResource {
		return
	}
	if was != nil {
		if old, ok := was.object.(*unstructured.Unstructured); ok && reflect.DeepEqual(old.Object["spec"], u.Object["spec"]) {
			u.Object["spec"] = old.Object["spec"]
			return
		}
	}
	u.Object["spec"] = newSharer().tree(u.Object["spec"])
}
