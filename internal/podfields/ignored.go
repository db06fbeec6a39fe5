// Package podfields records for each field of a pod whether and how a node implements it.
//
// fields.txt is the table. Its test walks the types of k8s.io/api: a field that the
// table does not have fails it, as does a row whose proof does not exist. The same test
// writes docs/pod-fields.md.
package podfields

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// ignored are the fields that nothing in this module acts on, with the reason. They are
// the rows "warned" of the table.
var ignored = map[string]string{
	"PodSecurityContext.windowsOptions": "it applies to Windows only",
	"SecurityContext.windowsOptions":    "it applies to Windows only",
}

// Ignored returns a sentence for each field that is set in spec and has no effect.
func Ignored(spec *v1.PodSpec) []string {
	var found []string
	walk(reflect.ValueOf(spec).Elem(), "spec", func(key, path string) {
		if reason, ok := ignored[key]; ok {
			found = append(found, fmt.Sprintf("%s is ignored: %s", path, reason))
		}
	})
	return found
}

// walk calls visit for each field below v that is not zero, with its type and name
// ("Probe.exec") and its path.
func walk(v reflect.Value, path string, visit func(key, path string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), path, visit)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i), visit)
			}
		}
	case reflect.Struct:
		if !ours(v.Type()) {
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if v.Field(i).IsZero() {
				continue
			}
			name := jsonName(f)
			if name == "" {
				walk(v.Field(i), path, visit)
				continue
			}
			visit(owner(v.Type())+"."+name, path+"."+name)
			walk(v.Field(i), path+"."+name, visit)
		}
	}
}

// ours reports whether the table has rows for a type's fields.
func ours(t reflect.Type) bool { return t.PkgPath() == reflect.TypeFor[v1.Pod]().PkgPath() }

// owner returns the name that a type has in the table.
func owner(t reflect.Type) string {
	if t == reflect.TypeFor[v1.EphemeralContainerCommon]() {
		return reflect.TypeFor[v1.Container]().Name() // it has the same fields
	}
	return t.Name()
}

// jsonName returns the name of a field in JSON; "" if its fields are those of the type
// it is in.
func jsonName(f reflect.StructField) string {
	parts := strings.Split(f.Tag.Get("json"), ",")
	if f.Anonymous && (parts[0] == "" || slices.Contains(parts[1:], "inline")) {
		return ""
	}
	return parts[0]
}
