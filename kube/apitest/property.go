package apitest

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// A propertyParser parses schemas of one definition. Parts that the JSON trees share are parsed once.
type propertyParser map[uintptr]*property

// parse parses a schema, which must not be changed.
func (p propertyParser) parse(t map[string]any) (*property, error) {
	at := reflect.ValueOf(t).Pointer()
	if known := p[at]; known != nil {
		return known, nil
	}
	one := &property{
		Minimum: number(t["minimum"]), Maximum: number(t["maximum"]), MinLength: count(t["minLength"]), MaxLength: count(t["maxLength"]),
		MinItems: count(t["minItems"]), MaxItems: count(t["maxItems"]), Default: integers(runtime.DeepCopyJSONValue(t["default"])),
	}
	one.Type, _ = t["type"].(string)
	one.Nullable, _ = t["nullable"].(bool)
	one.PreserveUnknown, _ = t["x-kubernetes-preserve-unknown-fields"].(bool)
	one.IntOrString, _ = t["x-kubernetes-int-or-string"].(bool)
	one.Embedded, _ = t["x-kubernetes-embedded-resource"].(bool)
	required, _ := t["required"].([]any)
	for _, name := range required {
		one.Required = append(one.Required, fmt.Sprint(name))
	}
	values, _ := t["enum"].([]any)
	for _, v := range values {
		one.Enum = append(one.Enum, fmt.Sprint(v))
	}
	properties, _ := t["properties"].(map[string]any)
	for name, v := range properties {
		sub, err := p.part(name, v)
		if err != nil {
			return nil, err
		}
		if one.Properties == nil {
			one.Properties = make(map[string]*property, len(properties))
		}
		one.Properties[name] = sub
	}
	var err error
	if items, ok := t["items"]; ok && items != nil {
		if one.Items, err = p.part("items", items); err != nil {
			return nil, err
		}
	}
	switch v := t["additionalProperties"].(type) {
	case nil:
	case bool:
		one.Additional = &additional{any: v}
	default:
		one.Additional = &additional{}
		if one.Additional.schema, err = p.part("additionalProperties", v); err != nil {
			return nil, err
		}
	}
	p[at] = one
	return one, nil
}

// part parses a schema that is part of another.
func (p propertyParser) part(name string, v any) (*property, error) {
	t, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("schema of %s: unexpected %T", name, v)
	}
	return p.parse(t)
}

// number returns a JSON number, or nil.
func number(v any) *float64 {
	switch n := v.(type) {
	case int64:
		return new(float64(n))
	case float64:
		return &n
	}
	return nil
}

// count returns a JSON number as an integer, or nil.
func count(v any) *int {
	n := number(v)
	if n == nil {
		return nil
	}
	return new(int(*n))
}

// integers returns a JSON value with int64 for the numbers that are integers.
func integers(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case map[string]any:
		for name := range v {
			v[name] = integers(v[name])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	}
	return value
}
