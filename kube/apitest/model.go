package apitest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// models describes Go types in OpenAPI.
type models struct {
	prefix      string // of references
	definitions map[string]any
}

func newModels(prefix string) *models {
	return &models{prefix: prefix, definitions: map[string]any{}}
}

// root describes the type of an object and returns its name.
func (b *models) root(o any) (map[string]any, string) {
	t := reflect.TypeOf(o).Elem()
	name := modelName(t)
	b.named(t)
	model, _ := b.definitions[name].(map[string]any)
	return model, name
}

func (b *models) objectMeta() any { return b.of(reflect.TypeFor[metav1.ObjectMeta]()) }

// modelName returns the name of a type in OpenAPI, such as io.k8s.api.core.v1.Pod.
func modelName(t reflect.Type) string {
	if named, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	domain, rest, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(domain, ".")
	slices.Reverse(parts)
	name := strings.Join(parts, ".")
	if rest != "" {
		name += "." + strings.ReplaceAll(rest, "/", ".")
	}
	return name + "." + t.Name()
}

// of describes a type; structs are references.
func (b *models) of(t reflect.Type) map[string]any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if special, ok := reflect.New(t).Interface().(interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	}); ok {
		out := map[string]any{}
		if types := special.OpenAPISchemaType(); len(types) > 0 {
			out["type"] = types[0]
		}
		if format := special.OpenAPISchemaFormat(); format != "" {
			out["format"] = format
		}
		return out
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Int32, reflect.Uint32:
		return map[string]any{"type": "integer", "format": "int32"}
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint8, reflect.Int8, reflect.Int16, reflect.Uint16, reflect.Uint:
		return map[string]any{"type": "integer", "format": "int64"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number", "format": "double"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "format": "byte"}
		}
		return map[string]any{"type": "array", "items": b.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": b.of(t.Elem())}
	case reflect.Struct:
		b.named(t)
		return map[string]any{"$ref": b.prefix + modelName(t)}
	}
	return map[string]any{"type": "object"}
}

// named adds the description of a struct.
func (b *models) named(t reflect.Type) {
	name := modelName(t)
	if b.definitions[name] != nil {
		return
	}
	model := map[string]any{"type": "object"}
	b.definitions[name] = model // before its fields, which may refer to it
	if _, ok := reflect.New(t).Interface().(json.Marshaler); ok {
		return // it has a form of its own
	}
	texts := map[string]string{}
	if documented, ok := reflect.New(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		texts = documented.SwaggerDoc()
	}
	if text := texts[""]; text != "" {
		model["description"] = text
	}
	properties := map[string]any{}
	b.fields(t, texts, properties)
	if len(properties) > 0 {
		model["properties"] = properties
	}
}

func (b *models) fields(t reflect.Type, texts map[string]string, properties map[string]any) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		inline := slices.Contains(strings.Split(options, ","), "inline") || field.Anonymous && name == ""
		switch {
		case inline:
			at := field.Type
			for at.Kind() == reflect.Pointer {
				at = at.Elem()
			}
			if at.Kind() == reflect.Struct {
				b.fields(at, texts, properties)
			}
			continue
		case name == "" || name == "-" || !field.IsExported():
			continue
		}
		p := b.of(field.Type)
		if text := texts[name]; text != "" && p["$ref"] == nil {
			p["description"] = text
		}
		if strategy := field.Tag.Get("patchStrategy"); strategy != "" {
			p["x-kubernetes-patch-strategy"] = strategy
		}
		if key := field.Tag.Get("patchMergeKey"); key != "" {
			p["x-kubernetes-patch-merge-key"] = key
		}
		if p["$ref"] != nil && len(p) > 1 || p["$ref"] != nil && b.prefix != "#/definitions/" && texts[name] != "" {
			ref := map[string]any{"$ref": p["$ref"]}
			delete(p, "$ref")
			if b.prefix == "#/definitions/" {
				p = ref
			} else {
				p["allOf"], p["description"] = []any{ref}, texts[name]
			}
		}
		properties[name] = p
	}
}
