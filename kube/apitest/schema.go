package apitest

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A property is a node of the schema of a custom resource. Rules in CEL and the keywords
// pattern, format, multipleOf, oneOf, anyOf, allOf and not are not evaluated.
type property struct {
	Type            string
	Nullable        bool
	Properties      map[string]*property
	Additional      *additional
	Items           *property
	Required        []string
	Enum            []string // as fmt.Sprint formats the values
	Default         any
	Minimum         *float64
	Maximum         *float64
	MinLength       *int
	MaxLength       *int
	MinItems        *int
	MaxItems        *int
	PreserveUnknown bool
	IntOrString     bool
	Embedded        bool
}

// additional is the keyword additionalProperties: a schema or a boolean.
type additional struct {
	schema *property
	any    bool
}

// applyRoot sets defaults, prunes unknown fields, which it returns, and validates an
// object, whose apiVersion, kind and metadata are not subject to the schema.
func (p *property) applyRoot(o map[string]any) (unknown []error, errs field.ErrorList) {
	root := *p
	root.Type, root.Required = "object", slices.DeleteFunc(slices.Clone(p.Required), isHeader)
	w := &schemaWalk{}
	w.object(&root, o, nil, isHeader)
	return w.unknown, w.errs
}

func isHeader(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

// A schemaWalk collects the findings of a schema.
type schemaWalk struct {
	unknown []error
	errs    field.ErrorList
}

func (w *schemaWalk) invalid(at *field.Path, value any, text string) {
	w.errs = append(w.errs, field.Invalid(at, value, text))
}

// value validates a value.
func (w *schemaWalk) value(p *property, value any, at *field.Path) {
	if p.IntOrString {
		return
	}
	if value == nil {
		if !p.Nullable {
			w.invalid(at, "null", fmt.Sprintf("%s in body must be of type %s: \"null\"", at, p.Type))
		}
		return
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, fmt.Sprint(value)) {
		w.errs = append(w.errs, field.NotSupported(at, value, p.Enum))
		return
	}
	ok := true
	switch v := value.(type) {
	case map[string]any:
		if ok = p.Type == "object" || p.Type == ""; ok {
			header := func(string) bool { return false }
			if p.Embedded {
				header = isHeader
			}
			w.object(p, v, at, header)
		}
	case []any:
		if ok = p.Type == "array" || p.Type == ""; ok {
			w.list(p, v, at)
		}
	case string:
		if ok = p.Type == "string" || p.Type == ""; ok {
			w.length(len([]rune(v)), p.MinLength, p.MaxLength, at, v, "chars long")
		}
	case bool:
		ok = p.Type == "boolean" || p.Type == ""
	case int64:
		if ok = p.Type == "integer" || p.Type == "number" || p.Type == ""; ok {
			w.number(p, float64(v), at)
		}
	case float64:
		if ok = p.Type == "number" || p.Type == "" || p.Type == "integer" && v == float64(int64(v)); ok {
			w.number(p, v, at)
		}
	}
	if !ok {
		w.errs = append(w.errs, field.TypeInvalid(at, fmt.Sprintf("%T", value), fmt.Sprintf("%s in body must be of type %s", at, p.Type)))
	}
}

// object validates the fields of an object.
func (w *schemaWalk) object(p *property, o map[string]any, at *field.Path, header func(string) bool) {
	for name, sub := range p.Properties {
		if _, ok := o[name]; !ok && sub.Default != nil {
			o[name] = runtime.DeepCopyJSONValue(sub.Default)
		} else if ok && o[name] == nil && !sub.Nullable {
			delete(o, name)
			if sub.Default != nil {
				o[name] = runtime.DeepCopyJSONValue(sub.Default)
			}
		}
	}
	for _, name := range p.Required {
		if _, ok := o[name]; !ok {
			w.errs = append(w.errs, field.Required(at.Child(name), ""))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		sub := p.Properties[name]
		switch {
		case header(name):
		case sub != nil:
			w.value(sub, o[name], at.Child(name))
		case p.Additional != nil && p.Additional.schema != nil:
			w.value(p.Additional.schema, o[name], at.Key(name))
		case p.PreserveUnknown, p.Additional != nil && p.Additional.any:
		default:
			w.unknown = append(w.unknown, fmt.Errorf("unknown field %q", at.Child(name).String()))
			delete(o, name)
		}
	}
}

func (w *schemaWalk) list(p *property, list []any, at *field.Path) {
	w.length(len(list), p.MinItems, p.MaxItems, at, len(list), "items")
	if p.Items == nil {
		return
	}
	for i, value := range list {
		w.value(p.Items, value, at.Index(i))
	}
}

func (w *schemaWalk) length(n int, least, most *int, at *field.Path, value any, unit string) {
	if least != nil && n < *least {
		w.invalid(at, value, fmt.Sprintf("%s in body should be at least %d %s", at, *least, unit))
	}
	if most != nil && n > *most {
		w.invalid(at, value, fmt.Sprintf("%s in body should be at most %d %s", at, *most, unit))
	}
}

func (w *schemaWalk) number(p *property, n float64, at *field.Path) {
	if p.Minimum != nil && n < *p.Minimum {
		w.invalid(at, n, fmt.Sprintf("%s in body should be greater than or equal to %v", at, *p.Minimum))
	}
	if p.Maximum != nil && n > *p.Maximum {
		w.invalid(at, n, fmt.Sprintf("%s in body should be less than or equal to %v", at, *p.Maximum))
	}
}
