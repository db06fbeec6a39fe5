package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// check returns warnings about the fields and feature gates of cfg that have no effect,
// and an error about those that are refused. object has the fields that the file sets: a
// zero value has no effect, except false where true is the only accepted value.
func check(cfg *kubeletconfig.KubeletConfiguration, object map[string]any) (warnings []string, err error) {
	var errs []error
	for _, f := range Fields() {
		warning, err := f.check(cfg, f.Name, isSet(object, f.Name))
		errs = append(errs, err)
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return append(warnings, gateWarnings(cfg.FeatureGates)...), errors.Join(errs...)
}

// CheckFlag is called after the field's flag was set. It returns a warning if the field
// is Ignored, or an error if it is Refused.
func (f Field) CheckFlag(cfg *kubeletconfig.KubeletConfiguration) (warning string, err error) {
	return f.check(cfg, "--"+f.Flag, true)
}

func (f Field) check(cfg *kubeletconfig.KubeletConfiguration, name string, set bool) (warning string, err error) {
	value, ok := f.value(cfg, false)
	if f.Effect == Honored || !ok || f.fine != "" && equalsYAML(value, f.fine) {
		return "", nil
	}
	setToFalse := value.Kind() == reflect.Bool && f.fine != "" && set
	switch {
	case isEmpty(value) && !setToFalse:
		return "", nil
	case f.Effect == Refused:
		return "", fmt.Errorf("%s: %s", name, f.Doc)
	}
	return fmt.Sprintf("%s has no effect: %s", name, f.Doc), nil
}

// isSet reports whether a file sets a field, to any value.
func isSet(object map[string]any, field string) bool {
	name, below, nested := strings.Cut(field, ".")
	value := object[name]
	if !nested {
		return value != nil
	}
	child, _ := value.(map[string]any)
	return isSet(child, below)
}

// value returns the field of cfg. It reports false if a struct that contains the field is
// nil; fill allocates such structs.
func (f Field) value(cfg *kubeletconfig.KubeletConfiguration, fill bool) (reflect.Value, bool) {
	at := reflect.ValueOf(cfg).Elem()
	for name := range strings.SplitSeq(f.Name, ".") {
		if at.Kind() == reflect.Pointer {
			if at.IsNil() && !fill {
				return at, false
			} else if at.IsNil() {
				at.Set(reflect.New(at.Type().Elem()))
			}
			at = at.Elem()
		}
		field, ok := fieldByJSONName(at.Type(), name)
		if !ok {
			return at, false
		}
		at = at.FieldByIndex(field.Index)
	}
	return at, true
}

func fieldByJSONName(of reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(of) {
		if jsonName(f) == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// isEmpty reports whether a field has its zero value, which includes the quantity "0".
func isEmpty(value reflect.Value) bool {
	zero, err := json.Marshal(reflect.Zero(value.Type()).Interface())
	text, err2 := json.Marshal(value.Interface())
	return err == nil && err2 == nil && string(text) == string(zero)
}

func equalsYAML(value reflect.Value, text string) bool {
	have, err := json.Marshal(value.Interface())
	want, err2 := yaml.YAMLToJSON([]byte(text))
	return err == nil && err2 == nil && string(have) == string(want)
}
