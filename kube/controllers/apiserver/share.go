package apiserver

import (
	"encoding/binary"
	"maps"
	"math"
	"reflect"
	"slices"
)

// A sharer replaces equal parts of trees of Go values by one of them. The schemas of a custom
// resource repeat parts, such as those of a pod template, and validators of their forms in Go
// take many times the memory of the definition. The trees must not be changed afterwards.
type sharer struct {
	ids   map[string]uint64 // of pointers, maps and slices, by their content, in which parts are ids
	parts []reflect.Value   // by id
	types map[reflect.Type]uint64
	key   []byte // of the parts that are being visited
}

func newSharer() *sharer { return &sharer{ids: map[string]uint64{}, types: map[reflect.Type]uint64{}} }

// share shares the equal parts of the tree at root, a pointer.
func (s *sharer) share(root any) {
	s.value(reflect.ValueOf(root).Elem())
	s.key = s.key[:0]
}

// value replaces the parts of v, and appends its key.
func (s *sharer) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		s.number(1)
		if !v.Bool() {
			s.key[len(s.key)-1] = 0
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		s.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		s.number(math.Float64bits(v.Float()))
	case reflect.String:
		s.number(uint64(v.Len()))
		s.key = append(s.key, v.String()...)
	case reflect.Struct:
		for i := range v.NumField() {
			s.value(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			s.value(v.Index(i))
		}
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		s.reference(v)
	default: // functions and channels are not compared
		s.part(v, len(s.key), true)
	}
}

func (s *sharer) number(n uint64) { s.key = binary.AppendUvarint(s.key, n) }

// reference replaces v by an equal part, and appends the id of that.
func (s *sharer) reference(v reflect.Value) {
	if v.IsNil() {
		s.number(0)
		return
	}
	start := len(s.key)
	s.number(s.typeID(v.Type()))
	if !v.CanSet() { // a field that is not exported
		s.part(v, start, true)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		s.value(v.Elem())
	case reflect.Interface:
		one := reflect.New(v.Elem().Type()).Elem()
		one.Set(v.Elem())
		s.number(s.typeID(one.Type()))
		s.value(one)
		v.Set(one)
	case reflect.Slice:
		s.number(uint64(v.Len()))
		for i := range v.Len() {
			s.value(v.Index(i))
		}
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			s.part(v, start, true)
			return
		}
		s.number(uint64(v.Len()))
		for _, name := range sortedKeys(v) {
			s.value(name)
			one := reflect.New(v.Type().Elem()).Elem()
			one.Set(v.MapIndex(name))
			s.value(one)
			v.SetMapIndex(name, one)
		}
	}
	s.part(v, start, false)
}

// part replaces v by the first equal part, whose key begins at start, and that key by its id. A
// unique part is equal to no other.
func (s *sharer) part(v reflect.Value, start int, unique bool) {
	id, ok := s.ids[string(s.key[start:])]
	if !ok || unique {
		id = uint64(len(s.parts))
		s.parts = append(s.parts, v)
		if !unique {
			s.ids[string(s.key[start:])] = id
			one := reflect.New(v.Type()).Elem() // v is the place, which may be a copy
			one.Set(v)
			s.parts[id] = one
		}
	} else {
		v.Set(s.parts[id])
	}
	s.key = s.key[:start]
	s.number(id + 1)
}

// typeID returns the id of a type.
func (s *sharer) typeID(t reflect.Type) uint64 {
	id, ok := s.types[t]
	if !ok {
		id = uint64(len(s.types))
		s.types[t] = id
	}
	return id
}

// sortedKeys returns the keys of a map, which are strings.
func sortedKeys(v reflect.Value) []reflect.Value {
	byName := make(map[string]reflect.Value, v.Len())
	for _, k := range v.MapKeys() {
		byName[k.String()] = k
	}
	out := make([]reflect.Value, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out
}
