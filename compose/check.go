package compose

import (
	"fmt"
	"reflect"
	"strings"
)

// Check returns an error if part hides one of the optional interfaces: if it wraps another R that
// implements the interface, and [As] does not find it. The error names the types of the wrapper and
// of the wrapped part, and the interface. R is the required interface. A constructor calls Check for
// each part with the optional interfaces that it uses; they are compared by reflection, which is too
// slow for other calls.
//
// A wrapper is a struct, or a pointer to one, with a field that contains an R. Parts that are wrapped
// in another way, such as in a function or a map, are not found. A [Wrapper] whose Unwrap returns nil
// hides on purpose.
func Check[R any](part R, optional ...reflect.Type) error {
	last := any(part)
	chain := []any{last}
	for range maxWrappers {
		w, ok := last.(Wrapper)
		if !ok {
			break
		}
		last = w.Unwrap()
		chain = append(chain, last)
	}
	if _, ok := last.(Wrapper); last == nil || ok {
		return nil // Unwrap returns nil, or the wrapper itself
	}
	s := search{required: reflect.TypeFor[R]()}
	for _, s.optional = range optional {
		if implementedBy(chain, s.optional) {
			continue
		}
		s.visited = map[pointer]bool{}
		if t := s.in(reflect.ValueOf(last)); t != nil {
			return fmt.Errorf("%T hides %s of %s; %s", last, describe(s.optional), t, advice(reflect.TypeOf(last)))
		}
	}
	return nil
}

func implementedBy(chain []any, optional reflect.Type) bool {
	for _, part := range chain {
		if reflect.TypeOf(part).Implements(optional) {
			return true
		}
	}
	return false
}

// A search finds a wrapped part that implements required and optional. It reads unexported fields, so
// it cannot call methods.
type search struct {
	required, optional reflect.Type
	visited            map[pointer]bool
}

type pointer struct {
	to      reflect.Type
	address uintptr
}

// in returns the type of the wrapped part in the fields of v; nil if there is none.
func (s *search) in(v reflect.Value) reflect.Type {
	if v.Kind() == reflect.Pointer {
		p := pointer{v.Type(), v.Pointer()}
		if v.IsNil() || s.visited[p] {
			return nil
		}
		s.visited[p] = true
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		field := v.Field(i)
		if field.Kind() == reflect.Interface {
			field = field.Elem()
		}
		if !field.IsValid() {
			continue
		}
		t := field.Type()
		if t.Kind() == reflect.Struct && !t.Implements(s.required) {
			t = reflect.PointerTo(t)
		}
		switch {
		case t.Implements(s.required) && t.Implements(s.optional):
			return t
		case t.Implements(s.required) || field.Kind() == reflect.Struct:
			if found := s.in(field); found != nil {
				return found
			}
		}
	}
	return nil
}

// describe returns the methods of an interface, and its name.
func describe(optional reflect.Type) string {
	methods := make([]string, optional.NumMethod())
	for i := range methods {
		methods[i] = optional.Method(i).Name
	}
	return fmt.Sprintf("%s (%s)", strings.Join(methods, ", "), optional)
}

func advice(wrapper reflect.Type) string {
	if m, ok := wrapper.MethodByName("Unwrap"); ok && m.Type.NumIn() == 1 && m.Type.NumOut() == 1 {
		return "its Unwrap must return any"
	}
	return "add Unwrap"
}
