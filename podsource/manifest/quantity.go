package manifest

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// endlessExponent matches a number whose exponent has four digits or more. Quantities are limited to
// 2^63, but their parser expands such a number before it checks the limit, which takes minutes for
// 1e999999999.
var endlessExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{3,}$`)

var quantityType = reflect.TypeFor[resource.Quantity]()

// checkQuantities returns an error for such a number where t, the type into which tree is decoded, has
// a quantity; elsewhere it is ordinary text. The decoder reports values that do not match the type.
func checkQuantities(tree any, t reflect.Type, path *field.Path) (errs field.ErrorList) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == quantityType {
		text := ""
		switch value := tree.(type) {
		case string:
			text = strings.TrimSpace(value)
		case json.Number:
			text = value.String()
		}
		if endlessExponent.MatchString(text) {
			return field.ErrorList{field.Invalid(path, shorten(text), "exponent out of range")}
		}
		return nil
	}
	switch node := tree.(type) {
	case []any:
		if t.Kind() == reflect.Slice {
			for i, child := range node {
				errs = append(errs, checkQuantities(child, t.Elem(), path.Index(i))...)
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			switch t.Kind() {
			case reflect.Map:
				errs = append(errs, checkQuantities(node[key], t.Elem(), path.Key(key))...)
			case reflect.Struct:
				if f := jsonField(t, key); f != nil {
					errs = append(errs, checkQuantities(node[key], f, path.Child(key))...)
				}
			}
		}
	}
	return errs
}

// jsonField returns the type of the field that key is decoded into, or nil.
func jsonField(t reflect.Type, key string) reflect.Type {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == key {
			return f.Type
		}
		if name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct {
			if inner := jsonField(f.Type, key); inner != nil {
				return inner
			}
		}
	}
	return nil
}
